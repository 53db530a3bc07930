/*
 * server_state.h
 *		What the files of the memory node's server share.  Private to rdma/.
 *
 * server.c: the object's files, open, close and the event loop.  connection.c: control sockets and their
 * requests. channel.c: life and death of channels, instances and their lock words.
 *
 * Life of a channel record:
 *
 *		FREE --channel_grant--> LIVE --channel_kill--> KILLED --channel_settle--> FREE
 *
 * channel_settle() needs the proof that nothing of the channel can land any more: its record is not active,
 * or its process is gone.
 */
#ifndef SHERMAN_SERVER_STATE_H
#define SHERMAN_SERVER_STATE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "control.h"
#include "memory.h"
#include "server.h"

/* A killed channel that stays in the middle of a chain for so long has its process killed. */
#define SERVER_KILL_AFTER_MS 1000u
/* And if that does not help either, whoever waits for it is refused. */
#define SERVER_REFUSE_AFTER_MS 3000u
/* Rounds of the loop while something waits for a channel's death. */
#define SERVER_DYING_ROUND_MS 2
/* Longest sleep of the loop: should_stop is asked that often. */
#define SERVER_ROUND_MS 100

typedef struct ServerConnection
{
	struct ServerConnection *next;
	int descriptor;
	int process; /* handle of the peer's process, or -1 */
	uint32_t pid;
	uint64_t process_start;
	bool denied;     /* a user whom we do not serve: every request is answered so */
	bool introduced; /* HELLO was answered */
	bool closing;    /* to be freed at the end of the round */
	bool attaching;  /* the reply to ATTACH is owed until the older channels are dead */
	uint64_t attach_nonce;
	uint64_t attach_deadline;
	ControlFrame request; /* the one being answered */
	uint64_t cluster[2];
	uint32_t incarnation;
	uint32_t channel; /* or CONTROL_NO_CHANNEL */
	int passed;       /* descriptor to go with the output, or -1 */
	uint32_t received;
	uint32_t output_bytes;
	uint32_t output_sent;
	uint8_t input[CONTROL_MAX_FRAME];
	uint8_t output[CONTROL_MAX_FRAME];
} ServerConnection;

/* What the server knows of a channel beside its record. */
typedef struct ServerChannel
{
	int process;        /* handle of a killed channel's process, or -1 */
	bool vanished;      /* a killed channel's process was gone when we looked for it */
	bool signalled;     /* SIGKILL was sent */
	uint64_t kill_time; /* when it was killed */
	ServerConnection *connection;
} ServerChannel;

struct FabricServer
{
	FabricServerOptions options;
	FabricService service;
	char *memory_path;
	char *lock_path;
	char *socket_path;
	Memory memory;
	Pages pages; /* of the memory object's file */
	int lock;
	int listener;
	int events;
	int wake;
	bool socket_made;
	bool draining;
	bool merciful; /* closing: nobody is killed for it */
	bool listener_paused;
	uint64_t listener_resume;
	atomic_bool stop;
	ServerConnection *connections;
	ServerChannel *channels;
	uint32_t live;  /* records that are LIVE */
	uint32_t dying; /* records that are KILLED */
	FabricServerFigures figures;
};

/* server.c */
extern void server_log(const FabricServer *server, FabricLogLevel level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* drain.c */

/*
 * The end of service: tells the clients, waits for at most drain_ms until nothing is held or in progress, kills all
 * channels.  True if the memory was quiet then.
 */
extern bool server_drain(FabricServer *server, int drain_ms);

/* connection.c */

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

extern void connection_accept(FabricServer *server);
extern void connection_ready(FabricServer *server, ServerConnection *connection, uint32_t events);
/* Ends the connection and kills its channel; it is freed by connections_round(). */
extern void connection_close(FabricServer *server, ServerConnection *connection);
/* Answers what waited for a channel's death; frees closed connections. */
extern void connections_round(FabricServer *server);

/* channel.c */
static inline MemoryChannelState
channel_state(const FabricServer *server, uint32_t channel)
{
	return (MemoryChannelState) (__atomic_load_n(&server->memory.channels[channel].state, __ATOMIC_SEQ_CST) &
	                             MEMORY_STATE_MASK);
}

/* Gives the connection a channel. FABRIC_NO_MEMORY: none is free. */
extern FabricStatus channel_grant(FabricServer *server, ServerConnection *connection, uint32_t instance,
                                  uint32_t incarnation);
/* Takes the right to change anything from a live channel; any other is left alone. */
extern void channel_kill(FabricServer *server, uint32_t channel);
/* Recovers a killed channel if it is proven dead; true if it is free afterwards. */
extern bool channel_settle(FabricServer *server, uint32_t channel);
/* Settles what can be settled, kills the processes of those that stay for too long. */
extern void channels_round(FabricServer *server);
/*
 * For an object that was kept: kills and settles all channels in use.  FABRIC_BUSY: one of them cannot be
 * proven dead.
 */
extern FabricStatus channels_recover(FabricServer *server);

extern MemoryInstance *instance_find(FabricServer *server, const uint64_t cluster[2], bool create);
static inline uint32_t
instance_number(const FabricServer *server, const MemoryInstance *instance)
{
	return (uint32_t) (instance - server->memory.instances) + 1;
}

/* Kills all channels of the instance; true if none is left to settle. */
extern bool instance_kill(FabricServer *server, uint32_t instance);
/* Frees the lock words of the instance's other incarnations and makes `incarnation` the current one. */
extern void instance_advance(FabricServer *server, MemoryInstance *instance, uint32_t incarnation,
                             uint64_t nonce);

#endif /* SHERMAN_SERVER_STATE_H */
