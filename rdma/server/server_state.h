/*
 * server_state.h
 *		Shared by the files of the memory node's server. Private to rdma/.
 *
 * server.c: open, close and the event loop.  segment_file.c: the segment's file.  server_snapshot.c: its snapshot.
 * units.c: node memory.  listen.c, accept.c: who comes in.  connection.c: sockets, their bytes and their end.
 * requests.c: HELLO, RESET, ATTACH and the service's calls.  chains.c: the chains that come in frames.  tenant.c,
 * tenant_ranges.c: what a tenant may have.  channel.c: life and death of channels.  fencing.c: the end of an
 * incarnation.
 *
 * Life of a channel record:
 *
 *		FREE --channel_grant--> LIVE --channel_kill--> KILLED --channel_settle--> FREE
 *
 * channel_settle() needs the proof that nothing of the channel can land any more: its record is not active,
 * or its process is gone.  A network client's chains run in this server: channel_kill() ends the one that
 * waits for a stripe, and that is the proof.
 */
#ifndef SHERMAN_SERVER_STATE_H
#define SHERMAN_SERVER_STATE_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rdma/memory/apply.h"
#include "rdma/base/buffer.h"
#include "rdma/base/control.h"
#include "rdma/server.h"
#include "rdma/base/spin.h"
#include "rdma/stream/stream.h"

/* A killed channel that stays in the middle of a chain for so long has its process killed. */
#define SERVER_KILL_AFTER_MS 1000u
/* And if that does not help either, clients that wait for it are refused. */
#define SERVER_REFUSE_AFTER_MS 3000u
/* Rounds of the loop while something waits for a channel's death. */
#define SERVER_DYING_ROUND_MS 2
/* Longest sleep of the loop: should_stop is asked that often. */
#define SERVER_ROUND_MS 100
/* In one of so many rounds with events, and in those without, the server looks whether its memory is whole. */
#define SERVER_LOOK_STEPS 64u
/*
 * Time of a network client for handshake and HELLO: as long as a client waits unless told otherwise. Where packets
 * are lost, data after a repeated SYN are sent again after 3 seconds, and after 6 more.
 */
#define SERVER_STRANGER_MS FABRIC_DEFAULT_TIMEOUT_MS
/*
 * The most network clients that have not proven a key or, where there are no keys, have not sent HELLO; then the
 * oldest of them is closed. So many that a client that has to wait for a processor is not the oldest by then.
 */
#define SERVER_MAX_STRANGERS 2048u
/* A reply is begun only while less than this is unsent: nothing is read from a client that does not read. */
#define SERVER_OUTPUT_BYTES (64u << 10)

_Static_assert(CONTROL_READER > MEMORY_LAST_INCARNATION, "no incarnation is taken for a reader");

typedef struct VerbsServer VerbsServer;

/* The chain that runs for a client that sends frames; one at a time, in the order of arrival. */
struct ServerConnection;

typedef struct ServerChain
{
	ApplyChannel channel;
	ApplyRun run;
	FrameHead frame; /* of the request; its length is that of the reply's data */
	uint64_t parked; /* since when it waits for a stripe or the device; 0: it does not */
	bool posted;     /* the device has it */
	/* Gives up a chain that waits, as its channel was killed: the client gets a reply (chains.c). */
	void (*drop)(FabricServer *server, struct ServerConnection *connection);
	FabricOp ops[FABRIC_MAX_CHAIN];
} ServerChain;

typedef struct ServerConnection
{
	TAILQ_ENTRY(ServerConnection) all;
	TAILQ_ENTRY(ServerConnection) list; /* strangers or closed ones */
	TAILQ_ENTRY(ServerConnection) due;
	FabricServer *server;
	int descriptor;
	Stream *stream; /* of a network client; NULL: a local one */
	int process;    /* handle of a local peer's process, or -1 */
	uint32_t pid;
	uint64_t process_start;
	uint32_t tenant;
	char identity[FABRIC_IDENTITY_BYTES]; /* of the key that proved it */
	uint32_t interest;                    /* what epoll watches */
	bool denied;                          /* a user whom we do not serve: every request is answered so */
	bool stranger;     /* a network client that has not said HELLO: it has not much time for it */
	bool handshake;    /* its stream's is not done */
	bool counted;      /* among its tenant's connections */
	bool introduced;   /* HELLO was answered */
	bool closing;      /* to be freed at the end of the round */
	bool attaching;    /* the reply to ATTACH is owed until the older channels are dead */
	bool fenced;       /* it had a channel, which is dead: its chains are refused */
	bool verbs;        /* its chains go through a device of its own, and not over this connection */
	bool is_due;       /* it is looked at in each round, not only when its socket is ready */
	bool reader;       /* its channel only reads */
	bool readers_full; /* it was refused a channel, as those that are left are not for readers */
	bool calling;      /* a call of the service goes on in the next round; its request stays in the input */
	bool waits;        /* in its last round it came no further: it waits for something */
	uint64_t stranger_deadline;
	uint64_t attach_nonce;
	uint64_t attach_deadline;
	FrameHead request;  /* the one being answered */
	uint64_t asked;     /* the round in which a request was handled last */
	uint8_t *call_data; /* of a call that goes on */
	uint32_t call_bytes;
	uint64_t call_progress;
	uint64_t cluster[2];
	uint32_t incarnation;
	uint32_t channel;   /* or CONTROL_NO_CHANNEL */
	int passed;         /* descriptor to go with the output, or -1 */
	ServerChain *chain; /* of a client with a channel whose chains come in frames */
	Buffer input;
	Buffer output;
} ServerConnection;

TAILQ_HEAD(ServerConnections, ServerConnection);

/* What the server knows of a channel beside its record. */
typedef struct ServerChannel
{
	int process;        /* handle of a killed channel's process, or -1 */
	bool vanished;      /* a killed channel's process was gone when we looked for it */
	bool signalled;     /* SIGKILL was sent */
	bool reader;        /* it only reads */
	uint64_t kill_time; /* when it was killed */
	ServerConnection *connection;
} ServerChannel;

/* What a tenant has now. */
typedef struct ServerTenant
{
	uint32_t channels;
	uint32_t connections; /* across the network, after the handshake */
} ServerTenant;

/* A tenant's part of NODES, on a memory node of access class NIC: [first, end), whole units; empty: it has none. */
typedef struct ServerPart
{
	uint64_t first;
	uint64_t end;
} ServerPart;

/* What clients can make us say at will is said a few times in a while; then it is counted. */
typedef enum ServerComplaint
{
	COMPLAINT_ACCEPT,
	COMPLAINT_REFUSED,
	COMPLAINT_PROTOCOL,
	COMPLAINT_REQUEST,
	COMPLAINT_CHAIN,
	COMPLAINT_ATTACHED,
	COMPLAINT_SERVICE,
	COMPLAINTS
} ServerComplaint;

typedef struct ServerComplaints
{
	uint64_t since; /* of the present while */
	uint32_t said;
	uint32_t unsaid;
} ServerComplaints;

struct FabricServer
{
	FabricServerOptions options;
	FabricService service;
	StreamContext *tls;
	FabricKeys *keys; /* NULL: network clients need none */
	char *memory_path;
	char *lock_path;
	char *socket_path;
	Memory memory;
	Pages pages; /* of the memory segment's file */
	int lock;
	int listener;
	int network_listener; /* or -1 */
	uint16_t network_port;
	int events;
	int wake;
	dev_t socket_device; /* of the socket that we made */
	ino_t socket_inode;  /* 0: we made none */
	bool draining;
	bool drained;  /* nobody is served any more */
	bool quiet;    /* nothing was held or in progress then */
	bool merciful; /* closing: nobody is killed for it */
	bool listener_paused;
	uint64_t listener_resume;
	atomic_bool stop;
	struct ServerConnections connections;
	struct ServerConnections strangers; /* the oldest first */
	struct ServerConnections closed;    /* to be freed */
	struct ServerConnections due;
	uint32_t network_connections; /* that are counted: max_connections bounds them */
	uint32_t stranger_count;
	uint64_t round;      /* number of this round: a look at the sockets */
	uint32_t handshakes; /* that went on in it */
	uint32_t attaching;
	uint32_t parked;        /* chains that wait for stripes or the device */
	uint64_t chains_before; /* figures.chains, a round ago */
	ServerConnection
		*talker;    /* the only one that had something in the last round with events; NULL: there was none */
	bool room_told; /* the log says that the file system is nearly full */
	uint32_t looks; /* counts looks while we spin */
	uint32_t steps; /* counts rounds with events */
	Spin spin;
	ServerTenant tenants[MEMORY_MAX_TENANTS];
	ServerPart parts[MEMORY_MAX_TENANTS];
	ServerComplaints complaints[COMPLAINTS];
	ServerChannel *channels;
	VerbsServer *verbs; /* access class NIC; NULL: class CPU */
	uint32_t live;      /* records that are LIVE */
	uint32_t dying;     /* records that are KILLED */
	bool none_alive;    /* at the start: of all channels' clients none is left that could write */
	FabricServerFigures figures;
};

/* log.c */
/* Behind a line that says that a file was set aside. */
extern void server_log_set_aside_hint(const FabricServer *server);
extern void server_log(const FabricServer *server, FabricLogLevel level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for what clients can cause at will; with server_complaints_round(). */
extern void server_complain(FabricServer *server, ServerComplaint kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
extern void server_complaints_round(FabricServer *server);

/* segment_file.c; for all of them: `detail` says what is wrong */
/* Takes the lock that says: this daemon serves the segment.  It lasts as long as the process. */
extern FabricStatus segment_lock(FabricServer *server, char *detail);
/*
 * Takes over the segment of an earlier daemon, if there is a sane one: FABRIC_OK with *found; without it, the file is
 * of no more use and no process can change it any more, or it was set aside. FABRIC_BUSY: a process still can.
 * FABRIC_DENIED: what is there is no memory segment, or others could have made or changed it.
 */
extern FabricStatus segment_open(FabricServer *server, bool *found, char *detail);
/* The sizes that the options ask for. */
extern MemorySizes segment_asked(const FabricServer *server);
/* Makes one; unless `valid`, its header gets its magic later. */
extern FabricStatus segment_create(FabricServer *server, const MemorySizes *sizes, bool valid, char *detail);
/*
 * Gives the segment, which has no channels in use, the sizes that the options ask for, as far as its content and the file
 * system let it: the log says so if they do not.
 */
extern FabricStatus segment_resize(FabricServer *server, char *detail);
/* Whether all of it is still there. If not, that is logged, and the segment is never used again. */
extern bool segment_is_whole(FabricServer *server);

/* server_snapshot.c; likewise */
/*
 * Makes the segment from the snapshot, if there is a valid one (*loaded), and removes the file. FABRIC_STOPPED: the
 * options' snapshot_go_on() said so; the file stays, as with any other error.
 */
extern FabricStatus saved_load(FabricServer *server, bool *loaded, char *detail);
/* The segment was kept: removes the snapshot, if there is one; one that is of other memory is set aside. */
extern FabricStatus saved_forget(const FabricServer *server, char *detail);
/*
 * Saves the memory, which is not served any more. FABRIC_BUSY: a client is in the middle of an operation; and what a
 * full disk is.
 */
extern FabricStatus saved_save(FabricServer *server);

/* server.c */

/* units.c */
/* Warns in the log if the file system of the segment is nearly full, and at the start if it can never hold all of it. */
extern void server_look_at_room(FabricServer *server, bool at_start);

/* listen.c */
/* The control socket, and what the loop waits on. */
extern FabricStatus listen_local(FabricServer *server, char *detail);
/* Removes the control socket, if what has its name is the one that listen_local() made. */
extern void listen_remove_socket(FabricServer *server);
/* Listens for network clients, if the options say so. */
extern FabricStatus listen_network(FabricServer *server, char *detail);
/* Accepts no connections until listen_resume(). */
extern void listen_pause(FabricServer *server, uint32_t milliseconds);
extern void listen_resume(FabricServer *server);

/* drain.c */

/* A round of the server's loop: fabric_server_step(). */
typedef FabricStatus (*ServerStep)(FabricServer *server, int milliseconds);

/*
 * The end of service: notifies the clients, waits for at most drain_ms until nothing is held or in progress, and
 * kills all channels. True if nothing was then.
 */
extern bool server_drain(FabricServer *server, ServerStep step, int drain_ms);

/* accept.c */
/* Takes those who wait at a listening socket. */
extern void connection_accept(FabricServer *server, int listener);
/* Goes on with the handshake of a network client; true: it is done. */
extern bool accept_handshake(FabricServer *server, ServerConnection *connection);

/* connection.c */
/* A connection for an accepted socket, which it takes over; NULL: no memory, and the socket is closed. */
extern ServerConnection *connection_make(FabricServer *server, int descriptor);
/* Frees one that was not begun, or is closed. */
extern void connection_free(ServerConnection *connection);
/* Has epoll watch for what the connection waits for; false: it cannot. */
extern bool connection_watch(const FabricServer *server, ServerConnection *connection, uint32_t interest);

/*
 * What epoll says when the peer's process ended, in place of the connection: its address with the lowest
 * bit set.
 */
static inline void *
connection_process_tag(ServerConnection *connection)
{
	return (char *) connection + 1;
}

static inline bool
is_process_tag(const void *pointer)
{
	return ((uintptr_t) pointer & 1) != 0;
}

static inline ServerConnection *
connection_of_process_tag(void *pointer)
{
	return (ServerConnection *) (void *) ((char *) pointer - 1);
}

/* Ends the connection and kills its channel; it is freed by connections_round(). */
extern void connection_close(FabricServer *server, ServerConnection *connection);
/*
 * Has the connection looked at in the next round, and in all others until connection_pump() finds nothing
 * to do.
 */
extern void connection_make_due(FabricServer *server, ServerConnection *connection);
extern void connection_not_due(FabricServer *server, ServerConnection *connection);
/*
 * Appends a reply to the request being answered, whose `bytes` of data are in the place that
 * connection_reply_place() gave, or are none.
 */
extern void connection_reply(FabricServer *server, ServerConnection *connection, const FrameHead *request,
                             FabricStatus status, uint32_t bytes);
/* The place for a reply's data, 8-aligned; NULL: no memory, and the connection is closed. */
extern uint8_t *connection_reply_place(FabricServer *server, ServerConnection *connection, uint32_t bytes);
/* Tells a client of verbs, whose chains do not pass the server, how the next of them would end. */
extern void connection_notify(FabricServer *server, ServerConnection *connection, FabricStatus status);
/* The network client said HELLO. */
extern void connection_introduced(FabricServer *server, ServerConnection *connection);
/* Counts a network client that has proven a key, or has said HELLO where there are none. */
extern void connection_count(FabricServer *server, ServerConnection *connection);
/* No channel came of it, or the connection ends: it has no chains. */
extern void chains_forget(ServerConnection *connection);
/* Sends what the socket takes of the output. False: the connection is closed. */
extern bool connection_send(FabricServer *server, ServerConnection *connection);

/* connection_loop.c */
/* The socket of the connection is ready, as epoll says. */
extern void connection_ready(FabricServer *server, ServerConnection *connection, uint32_t events);
/* Looks whether it has sent a chain, without asking epoll first, and answers it; true if it had. */
extern bool connection_look(FabricServer *server, ServerConnection *connection);
/* Goes on with what waited for something else than a socket; frees closed connections. */
extern void connections_round(FabricServer *server);
/* How long the loop may sleep, at most `milliseconds`. */
extern int connections_patience(const FabricServer *server, int milliseconds);

/* requests.c */
/* Goes on with a call of the service, if one goes on; true if it does still. */
extern bool request_continue(FabricServer *server, ServerConnection *connection);
/* Answers a request that is not a chain, or begins with it. */
extern void request_handle(FabricServer *server, ServerConnection *connection, uint8_t *data, uint32_t bytes);
/* Grants what ATTACH waits for, as soon as the older channels are dead. */
extern void request_continue_attach(FabricServer *server, ServerConnection *connection);

/* chains.c */
/* Before channel_grant(): takes the memory that chains in frames need. False: there is none. */
extern bool chains_prepare(ServerConnection *connection);
/* After channel_grant(): the channel can be used. */
extern void chains_begin(FabricServer *server, ServerConnection *connection);
/* Runs the chain of a frame and replies, or parks it. */
extern void chains_handle(FabricServer *server, ServerConnection *connection, uint8_t *payload,
                          uint32_t bytes);
/* Goes on with a parked chain, if the connection has one; true if it still is parked. */
extern bool chains_continue(FabricServer *server, ServerConnection *connection);

/* instances.c */
/*
 * The record of a cluster, or NULL.  instance_make() makes it if it is not there, for a tenant: NULL: there
 * are too many.
 */
extern MemoryInstance *instance_find(const FabricServer *server, const uint64_t cluster[2]);
extern MemoryInstance *instance_make(FabricServer *server, const uint64_t cluster[2], uint32_t tenant);
static inline uint32_t
instance_number(const FabricServer *server, const MemoryInstance *instance)
{
	return (uint32_t) (instance - server->memory.instances) + 1;
}

/* At the start, before anybody is served: every instance has to attach anew, its launcher too. */
extern void instances_fence(FabricServer *server);

/* channel.c */
static inline MemoryChannelState
channel_state(const FabricServer *server, uint32_t channel)
{
	return (MemoryChannelState) (__atomic_load_n(&server->memory.channels[channel].state, __ATOMIC_SEQ_CST) &
	                             MEMORY_STATE_MASK);
}

/* Gives the connection a channel. FABRIC_NO_MEMORY: none is free, or none for readers (readers_full). */
extern FabricStatus channel_grant(FabricServer *server, ServerConnection *connection, uint32_t instance,
                                  uint32_t incarnation);
/* Takes the right to change anything from a live channel; any other is left alone. */
extern void channel_kill(FabricServer *server, uint32_t channel);
/* Recovers a killed channel if it is proven dead; true if it is free afterwards. */
extern bool channel_settle(FabricServer *server, uint32_t channel);
/* Settles what can be settled, kills the processes of those that stay for too long. */
extern void channels_round(FabricServer *server);
/*
 * For a segment that was kept: kills and settles all channels in use.  FABRIC_BUSY: one of them cannot be
 * proven dead.
 */
extern FabricStatus channels_recover(FabricServer *server);

/* fencing.c */
/* Kills all channels of the instance; true if none is left to settle. */
extern bool instance_kill_channels(FabricServer *server, uint32_t instance);
/*
 * Frees the lock words of the instance's other incarnations and makes `incarnation` the current one.  False: they cannot be
 * freed, and nothing else was done.
 */
extern bool instance_advance(FabricServer *server, MemoryInstance *instance, uint32_t incarnation,
                             uint64_t nonce);

/* The incarnation after this one. */
static inline uint32_t
incarnation_next(uint32_t incarnation)
{
	return incarnation >= MEMORY_LAST_INCARNATION ? 1 : incarnation + 1;
}

/* tenant.c */

/*
 * The number of the tenant of that name, which is added if it is new; 0: there are too many, which is logged, or no
 * memory for its lock words.
 */
extern uint32_t tenant_number(FabricServer *server, const char *name);
/* May the tenant have one more?  What the others are sure of is left to them; and by a reader some to whose instance it reads. */
extern bool tenant_may_have_channel(const FabricServer *server, uint32_t tenant, bool reader);
extern bool tenant_may_have_connection(const FabricServer *server, uint32_t tenant);

/* tenant_ranges.c, for access class NIC */

/*
 * Deals the parts, while no client is served, and adds tenants that have keys. FABRIC_NOT_SUPPORTED: units of several
 * tenants lie among each other.
 */
extern FabricStatus parts_deal(FabricServer *server, char *detail);
/* Makes sure that the tenant has a part. False: nothing is left. */
extern bool part_make(FabricServer *server, uint32_t tenant);

#endif /* SHERMAN_SERVER_STATE_H */
