/*
 * reserve.c
 *		Shared memory that takes up memory only as it is used: tables that grow with the number of indexes.
 *
 * The main segment of shared memory has to be as large as its tables may become, and with huge pages it takes all of that
 * from the start.  The reserve is address space that the postmaster maps before it forks, so that it lies at one address in all
 * processes; the kernel adds a page when it is touched first.  So no setting limits the indexes that are in use at once.
 *
 * It is allocated from and never freed: what uses it has lists of its own parts that are free.
 */
#include "am/base/sherman.h"

#include <sys/mman.h>

#include "miscadmin.h"

#include "am/base/shared.h"

/* Of the table of trees (trees.c), for each tree that can be in use: its copy has an entry, too, and hash tables take more. */
#define TABLE_BYTES_PER_TREE (2 * (sizeof(ShermanTreeEntry) + 64))

/* Fewer than these trees are too few to start with. */
#define TREES_MIN 1024

typedef struct Reserve
{
	Size		bytes;			/* of all of it */
	pg_atomic_uint64 used;		/* from its start on */
} Reserve;

static Reserve *reserve = NULL;

/*
 * Bytes for so many trees in use.
 */
static Size
reserve_bytes(const TreeSharedOptions *options)
{
	return MAXALIGN(sizeof(Reserve)) + PG_CACHE_LINE_SIZE + tree_states_bytes(options) +
		options->trees * TABLE_BYTES_PER_TREE;
}

void
sherman_reserve_create(TreeSharedOptions *options)
{
	Size		bytes;
	void	   *memory;

	/* The shared memory of before a crash. */
	if (reserve != NULL)
		munmap(reserve, reserve->bytes);
	reserve = NULL;
	options->trees = SHERMAN_TREES_IN_USE;
	for (;;)
	{
		bytes = reserve_bytes(options);
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory != MAP_FAILED)
			break;
		/* A limit of the process's address space, or a kernel that counts what may be touched (overcommit_memory = 2). */
		if (options->trees <= TREES_MIN)
			ereport(FATAL,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("could not map %zu bytes of shared memory for sherman indexes: %m", bytes)));
		options->trees /= 2;
	}
	if (options->trees < SHERMAN_TREES_IN_USE)
		ereport(LOG,
				(errmsg("the system has address space for %u sherman indexes in use at once", options->trees),
				 errhint("Raise the limit of address space, or of what vm.overcommit_memory = 2 counts.")));
	reserve = memory;
	reserve->bytes = bytes;
	pg_atomic_init_u64(&reserve->used, MAXALIGN(sizeof(Reserve)));
	options->states = sherman_reserve_allocate(tree_states_bytes(options));
}

void *
sherman_reserve_allocate(Size bytes)
{
	uint64		from = pg_atomic_fetch_add_u64(&reserve->used, CACHELINEALIGN(bytes));

	if (from + CACHELINEALIGN(bytes) <= reserve->bytes)
		return (char *) reserve + from;
	pg_atomic_fetch_sub_u64(&reserve->used, CACHELINEALIGN(bytes));
	return NULL;
}
