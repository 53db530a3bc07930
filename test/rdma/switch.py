#!/usr/bin/env python3
"""An Ethernet switch for virtual machines, with scripted one-way faults.

usage: switch.py DIR HOSTS [FAULTS]

Each host I has two datagram sockets in DIR: the switch's end `switch.I` and QEMU's end `vm.I`.
FAULTS is a list of `SECONDS ACTION FROM TO [VALUE]`, separated by semicolons, on the clock
that starts with the first frame:
    5 cut 1 0         frames from host 1 to host 0 are dropped from second 5 on
    9 heal 1 0        ... and pass again from second 9 on, unharmed
    3 loss 0 1 0.05   5 % of the frames from 0 to 1 are dropped (0 ends it)
    3 delay 0 1 0.02  frames from 0 to 1 come 20 ms late (0 ends it)
    3 burst 1 0 20    each 20th frame from 1 to 0 is dropped, and the one behind it (0 ends it)
    3 double 0 1 0.05 5 % of the frames from 0 to 1 come twice, the second time 10 ms late (0 ends it)
    3 swap 0 1 0.05   5 % of the frames from 0 to 1 come 10 ms late, behind others (0 ends it)
FROM or TO may be `*`: all hosts. Lines that a machine appends to DIR/shared/net, `ACTION FROM TO [VALUE]`, are done at once.
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
    (float(w[0]), w[1:])
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
cut, loss, delay, burst, double, swap = set(), {}, {}, {}, {}, {}
rates = {"loss": loss, "delay": delay, "burst": burst, "double": double, "swap": swap}
LATE = 0.01  # seconds
counts = {}  # (from, to) -> frames seen
late = []  # heap of (due, number, host, frame)
start, number = None, 0
orders = None  # what the machines ask for


def which(word):
    return range(hosts) if word == "*" else [int(word)]


def change(now, words):
    action, value = words[0], float(words[3]) if len(words) > 3 else 0.0
    for link in ((a, b) for a in which(words[1]) for b in which(words[2])):
        if action == "cut":
            cut.add(link)
        elif action == "heal":
            cut.discard(link)
            for fault in rates.values():
                fault.pop(link, None)
        else:
            rates[action][link] = value
    print(f"[net] {now - (start or now):.1f} s: {' '.join(words)}", flush=True)


def lost(link):
    """Is the next frame on this link to be dropped?"""
    counts[link] = counts.get(link, 0) + 1
    period = burst.get(link, 0)
    return link in cut or random.random() < loss.get(link, 0) or (period > 0 and counts[link] % period < 2)


def pass_on(link, frame, wait):
    global number
    if wait > 0:
        number += 1
        heapq.heappush(late, (time.monotonic() + wait, number, link[1], frame))
    else:
        send(link[1], frame)


def send(host, frame):
    try:
        ends[host].sendto(frame, f"{directory}/vm.{host}")
    except OSError:
        pass  # that machine is down, or its queue is full: a wire loses frames too


while os.path.exists(f"{directory}/switch.0"):
    now = time.monotonic()
    while start and faults and now - start >= faults[0][0]:
        change(now, faults.pop(0)[1])
    if orders is None and os.path.exists(f"{directory}/shared/net"):
        orders = open(f"{directory}/shared/net")
    for line in orders or []:
        change(now, line.split())
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
                if host == source or lost(link):
                    continue
                wait = delay.get(link, 0)
                pass_on(link, frame, wait + (LATE if random.random() < swap.get(link, 0) else 0))
                if random.random() < double.get(link, 0):
                    pass_on(link, frame, wait + LATE)
