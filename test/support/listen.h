/*
 * listen.h
 *		Where the memory nodes of tests listen for network clients.
 *
 * That is a port of the loopback device.  script/test long network has them serve in another network namespace, so that their
 * clients really reach them over a network:
 *		FABRIC_TEST_NAMESPACE   file of the namespace (/run/netns/NAME)
 *		FABRIC_TEST_ADDRESS     the memory nodes' address in it
 */
#ifndef SHERMAN_TEST_LISTEN_H
#define SHERMAN_TEST_LISTEN_H

#define LISTEN_BYTES 32

/*
 * Takes "address:port" for one memory node, which it can come back to after its end.  *reserved, if not -1, is a
 * descriptor that keeps the port; to be closed when the memory node is not needed any more.
 */
extern void listen_take(char listen[LISTEN_BYTES], int *reserved);

/* In the process that is going to be the memory node: moves it to where it shall listen. */
extern void listen_enter(void);

/* Writes a new key of one tenant, "tests", into a new file, for memory nodes and clients. */
extern void listen_write_key(const char *path);

#endif /* SHERMAN_TEST_LISTEN_H */
