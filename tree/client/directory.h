/*
 * directory.h
 *		The calls between clients and the service of a memory node (service.c): methods, requests and replies.
 *
 * Both sides are built from one source and run on one kind of machine; the control channel's version covers the
 * layout. Every call may be repeated: its effect depends on the content of the request alone.
 */
#ifndef SHERMAN_DIRECTORY_H
#define SHERMAN_DIRECTORY_H

#include "tree/internal.h"

typedef enum DirectoryMethod
{
	DIRECTORY_CREATE = 1, /* DirectoryCreate -> DirectoryCreated */
	DIRECTORY_DROP,       /* DirectoryTree -> nothing */
	DIRECTORY_READ,       /* DirectoryTree -> TreeRecord */
	DIRECTORY_UPDATE,     /* TreeRecord -> nothing */
	DIRECTORY_LIST,       /* DirectoryPosition -> DirectoryListed */
	DIRECTORY_STATUS,     /* nothing -> TreeNodeStatus */
	DIRECTORY_EPOCH_OPEN, /* DirectoryEpoch -> nothing */
	DIRECTORY_EPOCH_CLOSE,
	DIRECTORY_EXTENT,   /* DirectoryExtentRequest -> DirectoryExtent */
	DIRECTORY_REPLICA,  /* DirectoryReplicaRequest -> DirectoryReplica */
	DIRECTORY_REPLICAS, /* DirectoryReplicasRequest -> DirectoryReplicas */
	DIRECTORY_DESCEND,  /* DirectoryDescent -> DirectoryDescended, up to the end of the image */
	DIRECTORY_GIVE,     /* DirectoryGive -> nothing */
	DIRECTORY_METHODS   /* how many, with 0, which is none */
} DirectoryMethod;

/*
 * A share: extents of a tree whose record is at another memory node. Only in TreeRecord.flags at the service.
 */
#define TREE_RECORD_SHARE 0x100u

typedef struct DirectoryCreate
{
	uint64_t token[2]; /* chosen at random by the client: the same token is the same tree */
	TreeRecord record;
	uint32_t memory_node; /* this memory node's number in the client's pointers */
	uint32_t reserved;
} DirectoryCreate;

typedef struct DirectoryExtent
{
	uint64_t offset;
	uint64_t bytes;
	uint64_t generation; /* of the extent's header: nodes begin with it */
	uint64_t tree_bytes; /* of the tree's extents at this memory node */
	uint32_t extents;    /* of the tree at this memory node, this one included */
	uint32_t whole;      /* 1: FETCH_ADD takes nothing of it any more */
} DirectoryExtent;

typedef struct DirectoryCreated
{
	TreeRecord record;
	DirectoryExtent extent;
} DirectoryCreated;

typedef struct DirectoryTree
{
	uint64_t tree;
} DirectoryTree;

typedef struct DirectoryPosition
{
	uint32_t position;
	uint32_t shares; /* 1: shares are listed instead of trees */
} DirectoryPosition;

typedef struct DirectoryListed
{
	uint32_t position; /* to go on from */
	uint32_t reserved;
	TreeRecord record;
} DirectoryListed;

typedef struct DirectoryEpoch
{
	uint64_t epoch;
} DirectoryEpoch;

/* In DirectoryExtentRequest.wanted. */
#define DIRECTORY_WANTED_ALL 0x80000000u

/*
 * The tree has `extents` extents here, as the caller knows: if it has more the last one is returned, else one
 * is added.  With 0 and a tree that has some: the last one.  `share`: make a share if the tree is not known
 * here.  `wanted`: the caller's instance has the tree for itself, so that one that is added is its own as a whole, and is about to
 * use so many bytes: the extent has at least as many, if there is memory for it.  0: processes take chunks of it by FETCH_ADD.
 * With DIRECTORY_WANTED_ALL they are all that the tree is foreseen to use: the extent has no more than whole units of them.
 */
typedef struct DirectoryExtentRequest
{
	uint64_t tree;
	uint32_t extents;
	uint32_t share;
	uint32_t home; /* for a share: the memory node that has the tree's record */
	uint32_t wanted;
	uint64_t home_member; /* and what records call its memory */
} DirectoryExtentRequest;

/*
 * An extent that nothing is in any more goes back to the memory node.  Not the newest one, nor the root's, nor any of a tree with
 * copies: FABRIC_RANGE.  The header of the next newer one is made to name the one before it.  FABRIC_NOT_FOUND: the tree has no such
 * extent (any more).
 */
typedef struct DirectoryGive
{
	uint64_t tree;
	uint64_t offset;
	uint64_t number; /* as its header says */
	uint64_t newer;  /* offset of the extent whose header names it */
} DirectoryGive;

/*
 * Makes a replica of an extent, or of its rest from `offset` on. The reply may cover less; then the rest takes
 * another call. A replica that exists already is returned again. `record`: of a tree that is not known here yet; else
 * tree is 0 in it.
 */
typedef struct DirectoryReplicaRequest
{
	uint64_t tree;
	uint64_t offset; /* at the tree's home */
	uint64_t bytes;
	TreeRecord record;
} DirectoryReplicaRequest;

typedef struct DirectoryReplica
{
	uint64_t offset; /* at the tree's home */
	uint64_t bytes;
	uint64_t copy; /* offset here */
} DirectoryReplica;

typedef struct DirectoryReplicasRequest
{
	uint64_t tree;
	uint64_t position; /* 0, or as the last answer said */
} DirectoryReplicasRequest;

/* Copies in one answer. */
#define DIRECTORY_REPLICAS_MAX 64u

typedef struct DirectoryReplicas
{
	uint64_t position;
	uint32_t count; /* 0: there are no more */
	uint32_t reserved;
	DirectoryReplica replicas[DIRECTORY_REPLICAS_MAX];
} DirectoryReplicas;

/* Flags of a descent, from TreeBound and TreeFormat. */
#define DESCENT_HIGH 0x01u
#define DESCENT_CUT 0x02u
#define DESCENT_BITS_VALID 0x04u
#define DESCENT_EXACT 0x08u
#define DESCENT_LOSSLESS 0x10u
#define DESCENT_FLAGS 0x1fu

/*
 * The rest of a lookup's descent, from an inner node on: the bound as far as integers decide it. The caller passes
 * the tree's format: a memory node that has only a part of the tree does not know it.
 */
typedef struct DirectoryDescent
{
	uint64_t tree;
	uint64_t pointer; /* an inner node here */
	uint64_t norm[TREE_NORM_WORDS];
	uint32_t level; /* of the node: 1 and above */
	uint32_t block;
	uint16_t offset;
	int8_t side;
	uint8_t norm_length;
	uint8_t flags;
	uint8_t cell_bytes;
	uint8_t norm_bytes;
	uint8_t reserved;
} DirectoryDescent;

typedef struct DirectoryDescended
{
	uint64_t pointer; /* the leaf; 0: the way ended before, for any reason */
	uint32_t visited; /* nodes that were looked at */
	uint32_t bytes;   /* of the image; 0: the leaf is not here, or is being written */
	uint64_t image[NODE_MAX_BYTES / 8];
} DirectoryDescended;

/* What an answer has without its image. */
#define DIRECTORY_DESCENDED_BYTES (sizeof(DirectoryDescended) - NODE_MAX_BYTES)

_Static_assert(sizeof(DirectoryDescended) <= FABRIC_MAX_CALL_BYTES, "the longest leaf is an answer");

/* The first extent's root: behind the extent's header, one stripe, whatever the leaf's size. */
#define DIRECTORY_ROOT_OFFSET FABRIC_STRIPE_BYTES
/* Where chunks begin in the first extent, and in the others. */
#define DIRECTORY_FIRST_BUMP (2u * FABRIC_STRIPE_BYTES)
#define DIRECTORY_OTHER_BUMP FABRIC_STRIPE_BYTES

/* fabric_call(), as a crash point in builds for tests. */
#ifdef SHERMAN_PRODUCTION
static inline FabricStatus
crash_point_call(const TreeClient *client, FabricEndpoint *endpoint, DirectoryMethod method,
                 const void *request, uint32_t request_bytes, void *reply, uint32_t *reply_bytes)
{
	(void) client;
	return fabric_call(endpoint, (uint16_t) method, request, request_bytes, reply, reply_bytes);
}
#else
extern FabricStatus crash_point_call(const TreeClient *client, FabricEndpoint *endpoint,
                                     DirectoryMethod method, const void *request, uint32_t request_bytes,
                                     void *reply, uint32_t *reply_bytes);
#endif

/*
 * Asks memory node `memory_node` for an extent (DirectoryExtentRequest).  A tree that has none there yet (`extents` 0) gets a share,
 * unless this is its home: first its record learns of the memory node, then the share is made, so that a tree
 * whose record does not name a memory node has nothing there.  TREE_MEMORY_FULL, TREE_NOT_FOUND,
 * TREE_UNREACHABLE, TREE_FENCED.  Nothing may be held.
 */
extern TreeStatus directory_extent_wanted(TreeClient *client, uint32_t memory_node, uint64_t tree,
                                          uint32_t home, uint32_t extents, uint32_t wanted,
                                          DirectoryExtent *extent);

/* The same, where chunks are taken by FETCH_ADD. */
static inline TreeStatus
directory_extent(TreeClient *client, uint32_t memory_node, uint64_t tree, uint32_t home, uint32_t extents,
                 DirectoryExtent *extent)
{
	return directory_extent_wanted(client, memory_node, tree, home, extents, 0, extent);
}

/* Gives an extent back to its memory node.  TREE_OK, too, if it was given before. */
extern TreeStatus directory_give(TreeClient *client, uint32_t memory_node, const DirectoryGive *give);

/*
 * Calls, and turns the answer into a TreeStatus; the reply must be exactly reply_bytes long. Nothing may be
 * held.
 */
extern TreeStatus directory_call(TreeClient *client, uint32_t memory_node, DirectoryMethod method,
                                 const void *request, uint32_t request_bytes, void *reply,
                                 uint32_t reply_bytes);

/* Reads the record or share of a tree at one memory node. TREE_NOT_FOUND: it has nothing there. */
extern TreeStatus directory_record(TreeClient *client, uint32_t memory_node, uint64_t tree,
                                   TreeRecord *record);

/*
 * Asks the copy's memory node for the copy of a place at the home, and for the next ones of all that there
 * are.
 */
extern TreeStatus directory_replica(TreeClient *client, uint32_t memory_node, uint64_t tree, uint64_t offset,
                                    uint64_t bytes, DirectoryReplica *copy);
extern TreeStatus directory_replicas(TreeClient *client, uint32_t memory_node, uint64_t tree,
                                     uint64_t *position, DirectoryReplicas *replicas);
/* A new tree gets the copy of its record and of its first extent. *root: pointer of the root's copy. */
extern TreeStatus directory_replica_begin(TreeClient *client, const DirectoryCreated *created,
                                          uint64_t *root);

#endif /* SHERMAN_DIRECTORY_H */
