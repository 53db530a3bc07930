/*
 * server.h
 *		The face of am/server: what the server starts with.
 */
#ifndef SHERMAN_AM_SERVER_H
#define SHERMAN_AM_SERVER_H

#include "am/base/shared.h"

/* ---- forget.c: memory nodes that are not coming back ---- */

/* In the launcher: forgets those that sessions have asked for. */
extern void sherman_forget_round(void);

/* ---- attach.c: the launcher's part in it ---- */

/* After the launcher was started anew: goes on with the memory nodes that are attached. */
extern void sherman_attach_resume(void);
/* One round: attaches what is due, looks after what is attached. */
extern void sherman_attach_round(void);
/* Milliseconds until the next round is due. */
extern long sherman_attach_pause(void);
/* Asked to end: closes the epochs, if no other process of the instance has a connection. False: some have. */
extern bool sherman_attach_end(void);

/* ---- workers.c ---- */
extern PGDLLEXPORT void sherman_node_main(Datum argument);
extern PGDLLEXPORT void sherman_launcher_main(Datum argument);
/* Data channels that the embedded node serves at once. */
extern uint32 sherman_node_channels(void);

/* ---- statements.c ---- */

/* Installs the hooks of the executor. */
extern void sherman_statements_install(void);

/* ---- apply.c ---- */

/* Installs what the log says of replica identities that an apply worker cannot use. */
extern void sherman_apply_install(void);

/* ---- hooks.c ---- */

extern void sherman_install_hooks(void);
extern void sherman_register_workers(void);

#endif							/* SHERMAN_AM_SERVER_H */
