/*
 * network.h
 *		TCP sockets: addresses, listening, connecting, and timeouts for silent peers. Private to rdma/.
 */
#ifndef SHERMAN_NETWORK_H
#define SHERMAN_NETWORK_H

#include "rdma/base/transport.h"

/*
 * A peer whose host does not answer is given up after about this: at most NETWORK_IDLE_S of silence before
 * it is asked, then NETWORK_SILENCE_MS without an answer.
 */
#define NETWORK_IDLE_S 5
#define NETWORK_PROBE_S 2
#define NETWORK_SILENCE_MS 10000

/*
 * Listens at "host:port". An empty host or "*" is every address; port 0 is a free one, *port says which. *loopback:
 * it cannot be reached from outside this machine. FABRIC_UNREACHABLE: `detail` (FABRIC_DETAIL_BYTES) says why.
 */
extern FabricStatus network_listen(const char *location, int backlog, int *descriptor, uint16_t *port,
                                   bool *loopback, char *detail);

/* Small frames leave at once, and a peer that is gone is noticed. For a connected socket. */
extern void network_tune(int descriptor);

/*
 * Connects to "host:port", to the first of its addresses that answers.  The socket is non-blocking.
 * FABRIC_UNREACHABLE, FABRIC_STOPPED; the fabric's detail says more.  `deadline` is of fabric_now(); only
 * the resolver of host names keeps its own.
 */
extern FabricStatus network_connect(Fabric *fabric, const char *location, uint64_t deadline, int *descriptor);

/*
 * Sleeps through the wait hook until the socket is readable, or writable if that is asked for as well, at
 * most until the deadline. FABRIC_OK (perhaps without cause), FABRIC_TIMED_OUT, FABRIC_STOPPED.
 */
extern FabricStatus network_sleep(const Fabric *fabric, int descriptor, bool writable, uint64_t deadline);

#endif /* SHERMAN_NETWORK_H */
