#!/usr/bin/env python3
"""An Ethernet switch for virtual machines, with scripted one-way faults.

usage: switch.py DIR HOSTS [FAULTS]

Each host I has two datagram sockets in DIR: the switch's end `switch.I` and QEMU's end `vm.I`.
FAULTS is a list of `SECONDS ACTION FROM TO [VALUE]`, separated by semicolons, on the clock
that starts with the first frame:
    5 cut 1 0         frames from host 1 to host 0 are dropped from second 5 on
    9 heal 1 0        ... and pass again from second 9 on
    3 loss 0 1 0.05   5 % of the frames from 0 to 1 are dropped (0 ends it)
    3 delay 0 1 0.02  frames from 0 to 1 come 20 ms late (0 ends it)
"""
import heapq
import os
import random
import select
import socket
import sys
import time

directory, hosts = sys.argv[1], int(sys.argv[2])
faults = sorted(
    (float(w[0]), w[1], int(w[2]), int(w[3]), float(w[4]) if len(w) > 4 else 0.0)
    for w in (f.split() for f in (sys.argv[3] if len(sys.argv) > 3 else "").split(";"))
    if w
)
ends = []
for host in range(hosts):
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.bind(f"{directory}/switch.{host}")
    end.setblocking(False)
    ends.append(end)
where = {}  # MAC address -> host
cut, loss, delay = set(), {}, {}
late = []  # heap of (due, number, host, frame)
start, number = None, 0


def send(host, frame):
    try:
        ends[host].sendto(frame, f"{directory}/vm.{host}")
    except OSError:
        pass  # that machine is down, or its queue is full: a wire loses frames too


while os.path.exists(f"{directory}/switch.0"):
    now = time.monotonic()
    while start and faults and now - start >= faults[0][0]:
        _, action, a, b, value = faults.pop(0)
        {
            "cut": lambda: cut.add((a, b)),
            "heal": lambda: cut.discard((a, b)),
            "loss": lambda: loss.__setitem__((a, b), value),
            "delay": lambda: delay.__setitem__((a, b), value),
        }[action]()
        print(f"[net] {now - start:.1f} s: {action} {a} -> {b} {value or ''}", flush=True)
    while late and late[0][0] <= now:
        send(*heapq.heappop(late)[2:])
    for end in select.select(ends, [], [], max(0.0, min(0.1, late[0][0] - now)) if late else 0.1)[0]:
        source = ends.index(end)
        for _ in range(256):
            try:
                frame = end.recv(65536)
            except BlockingIOError:
                break
            start = start or time.monotonic()
            where[frame[6:12]] = source
            known = where.get(frame[0:6])
            for host in range(hosts) if known is None else [known]:
                link = (source, host)
                if host == source or link in cut or random.random() < loss.get(link, 0):
                    continue
                if delay.get(link):
                    number += 1
                    heapq.heappush(late, (time.monotonic() + delay[link], number, host, frame))
                else:
                    send(host, frame)
