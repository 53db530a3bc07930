/*
 * keysort.c
 *		Sorting of lossless keys for a build: by integers, in memory and in temporary files.
 *
 * A key and its TID are two to four words whose order as integers is the order of the index.  In an array
 * they are sorted where they lie, by PostgreSQL's sort template: no comparison follows a pointer, and reading
 * the result back walks through memory from end to end, whereas in a tuplesort each row is a cache miss, in
 * which a build would spend a third of its time.  When the array is full it goes, sorted, into a temporary
 * file as a run; in the end the runs are merged.
 *
 * Longer keys go through tuplesort as strings: the key's words big-endian, as far as the columns fill them,
 * and the TID; under memcmp() they have the same order.  tuplesort compares abbreviated keys.
 *
 * Several processes: each sorts its rows into runs in a temporary file that all can read, which is a copy
 * in the kernel's cache at most, and one process merges them.
 */
#include "am/base/sherman.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/buffile.h"
#include "storage/sharedfileset.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "am/base/compat.h"
#include "am/keys/keysort.h"

/* Words of normalized key that are sorted in an array: cells of up to 32 bytes. */
#define ARRAY_WORDS_MAX 3

/* Rows that the array begins with. */
#define ARRAY_ROWS_FIRST 1024

/* Rows that a run is read by at least when runs are merged: a block of a temporary file. */
#define RUN_BUFFER_BYTES_LEAST BLCKSZ

/* TID at the end of a string: block and offset, big-endian, the latter as encode_offset() makes it. */
#define STRING_TID_BYTES 6

/* The string that tuplesort sorts. */
typedef struct KeyString
{
	uint8		vl_header;		/* varlena header of one byte: a bigint and a TID make 16 bytes with it */
	uint8		bytes[KEY_NORM_MAX + STRING_TID_BYTES];
} KeyString;

/* Rows that a participant moves at once out of its tuplesort. */
#define MOVED_ROWS 512

/* Bytes of a shared file's name. */
#define SHARED_NAME_BYTES 32

/* One participant's rows with one leading bit, in a file of the set. */
typedef struct KeySortPart
{
	size_t		rows;
	size_t		run_rows;		/* of each run but the last */
} KeySortPart;

struct KeySortShare
{
	SharedFileSet files;
	int			participants;
	KeySortPart part[FLEXIBLE_ARRAY_MEMBER][2]; /* by the leading bit */
};

/* A sorted run in a temporary file; while runs are merged, with a buffer. */
typedef struct KeyRun
{
	BufFile    *file;
	int			file_number;	/* where its next rows are */
	off_t		offset;
	size_t		rows;			/* there */
	uint64	   *buffer;
	size_t		count;			/* rows in the buffer */
	size_t		next;			/* of them, the one to return */
	int			row_words;
} KeyRun;

struct KeySort
{
	MemoryContext context;		/* of all of this */
	int			words;			/* of normalized key */
	int			bytes;			/* of them that the columns fill; the others are 0 */
	size_t		memory;			/* bytes */

	/* the array; NULL: everything goes to tuplesort, or comes from others' runs */
	size_t		row_words;		/* normalized key and TID */
	uint64	   *rows;
	size_t		count;
	size_t		capacity;
	size_t		capacity_most;
	size_t		next;			/* row to return */

	BufFile    *file;			/* of the runs that are written here; NULL: none was */
	KeyRun	   *runs;
	int			run_count;
	int			run_capacity;
	size_t		run_buffer_rows;	/* room of a run's buffer */
	binaryheap *heap;			/* of runs, by their next rows */

	Tuplesortstate *strings;
	KeyString	string;			/* with its header set */

	KeySortShare *share;		/* not NULL: what is sorted is handed over there */
	int			participant;
	bool		high;
};

/*
 * An offset with a bit behind it that says whether the row is dead: it does not change the order of TIDs, each
 * of which is there once.
 */
static inline uint16
encode_offset(const TreeKey *key, bool dead)
{
	return (uint16) (key->offset << 1 | (dead ? 1 : 0));
}

static inline void
decode_offset(uint16 encoded, TreeKey *key, bool *dead)
{
	key->offset = encoded >> 1;
	*dead = (encoded & 1) != 0;
}

static inline void
encode_row(const TreeKey *key, bool dead, int words, uint64 *row)
{
	for (int i = 0; i < words; i++)
		row[i] = key->norm[i];
	row[words] = (uint64) key->block << 16 | encode_offset(key, dead);
}

static inline void
decode_row(const uint64 *row, int words, TreeKey *key, bool *dead)
{
	for (int i = 0; i < words; i++)
		key->norm[i] = row[i];
	key->block = (uint32) (row[words] >> 16);
	decode_offset((uint16) row[words], key, dead);
}

/*
 * Order of two rows of so many words, which the compiler knows.
 */
static inline int
compare_rows(const uint64 *a, const uint64 *b, int row_words)
{
	for (int i = 0; i < row_words; i++)
	{
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

typedef struct Row2
{
	uint64		word[2];
} Row2;

#define ST_SORT sort_rows_2
#define ST_ELEMENT_TYPE Row2
#define ST_COMPARE(a, b) compare_rows((a)->word, (b)->word, 2)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

typedef struct Row3
{
	uint64		word[3];
} Row3;

#define ST_SORT sort_rows_3
#define ST_ELEMENT_TYPE Row3
#define ST_COMPARE(a, b) compare_rows((a)->word, (b)->word, 3)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

typedef struct Row4
{
	uint64		word[4];
} Row4;

#define ST_SORT sort_rows_4
#define ST_ELEMENT_TYPE Row4
#define ST_COMPARE(a, b) compare_rows((a)->word, (b)->word, 4)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

#include "am/keys/keys.h"

StaticAssertDecl(ARRAY_WORDS_MAX + 1 == 4, "each row length has its sort");

/*
 * Makes a sort that cannot take keys yet.
 */
static KeySort *
make_sort(const ShermanKeys *keys, int memory_kb)
{
	KeySort    *sort = palloc0(sizeof(KeySort));
	const KeyColumn *last = &keys->column[keys->in_norm - 1];

	Assert(keys->format.lossless);
	sort->context = CurrentMemoryContext;
	sort->bytes = last->at + last->bytes;
	/* Words that no column reaches are 0 in all keys. */
	sort->words = (sort->bytes + sizeof(uint64) - 1) / sizeof(uint64);
	sort->row_words = sort->words + 1;
	sort->memory = (size_t) memory_kb * 1024;
	return sort;
}

KeySort *
key_sort_begin(const ShermanKeys *keys, int memory_kb)
{
	KeySort    *sort = make_sort(keys, memory_kb);

	if (sort->words > ARRAY_WORDS_MAX)
	{
		SET_VARSIZE_SHORT(&sort->string, VARHDRSZ_SHORT + sort->bytes + STRING_TID_BYTES);
		sort->strings = tuplesort_begin_datum(BYTEAOID, ByteaLessOperator, InvalidOid, false, memory_kb, NULL,
											  TUPLESORT_NONE);
		return sort;
	}
	sort->capacity_most = Max(sort->memory / (sort->row_words * sizeof(uint64)), ARRAY_ROWS_FIRST);
	sort->capacity = ARRAY_ROWS_FIRST;
	sort->rows = palloc(sort->capacity * sort->row_words * sizeof(uint64));
	return sort;
}

/* ---- strings ---- */

/*
 * Puts a key into the tuplesort.
 */
static void
put_string(KeySort *sort, const TreeKey *key, bool dead)
{
	uint8	   *tid_bytes = sort->string.bytes + sort->bytes;
	uint32		block = pg_hton32(key->block);
	uint16		offset = pg_hton16(encode_offset(key, dead));

	for (int i = 0; i < sort->words; i++)
	{
		uint64		word = pg_hton64(key->norm[i]);

		memcpy(sort->string.bytes + i * sizeof(word), &word, sizeof(word));
	}
	memcpy(tid_bytes, &block, sizeof(block));
	memcpy(tid_bytes + sizeof(block), &offset, sizeof(offset));
	tuplesort_putdatum(sort->strings, PointerGetDatum(&sort->string), false);
}

/*
 * The next string of the tuplesort.
 */
static bool
next_string(KeySort *sort, TreeKey *key, bool *dead)
{
	uint64		words[TREE_NORM_WORDS] = {0};
	const KeyString *string;
	const uint8 *tid_bytes;
	uint32		block;
	uint16		offset;
	Datum		datum;

	if (!compat_sorted_datum(sort->strings, &datum))
		return false;
	string = (const KeyString *) DatumGetPointer(datum);
	tid_bytes = string->bytes + sort->bytes;
	memcpy(words, string->bytes, sort->bytes);
	for (int i = 0; i < sort->words; i++)
		key->norm[i] = pg_ntoh64(words[i]);
	memcpy(&block, tid_bytes, sizeof(block));
	memcpy(&offset, tid_bytes + sizeof(block), sizeof(offset));
	key->block = pg_ntoh32(block);
	decode_offset(pg_ntoh16(offset), key, dead);
	pfree(DatumGetPointer(datum));
	return true;
}

/* ---- runs ---- */

static void
sort_rows(KeySort *sort)
{
	if (sort->row_words == 2)
		sort_rows_2((Row2 *) sort->rows, sort->count);
	else if (sort->row_words == 3)
		sort_rows_3((Row3 *) sort->rows, sort->count);
	else
		sort_rows_4((Row4 *) sort->rows, sort->count);
}

static void
name_part(char *name, int participant, bool high)
{
	snprintf(name, SHARED_NAME_BYTES, "keys.%d.%d", participant, high ? 1 : 0);
}

/*
 * Makes the file for runs, unless it is there.
 */
static void
open_file(KeySort *sort)
{
	char		name[SHARED_NAME_BYTES];

	if (sort->file != NULL)
		return;
	if (sort->share != NULL)
	{
		name_part(name, sort->participant, sort->high);
		sort->file = BufFileCreateFileSet(&sort->share->files.fs, name);
		return;
	}
	PrepareTempTablespaces();
	sort->file = BufFileCreateTemp(false);
}

/*
 * Adds a run of so many rows, to be read from `file`.
 */
static KeyRun *
add_run(KeySort *sort, BufFile *file, size_t rows)
{
	KeyRun	   *run;

	if (sort->run_count == sort->run_capacity)
	{
		sort->run_capacity = Max(sort->run_capacity * 2, 16);
		sort->runs = sort->runs == NULL ? palloc(sort->run_capacity * sizeof(KeyRun)) :
			repalloc(sort->runs, sort->run_capacity * sizeof(KeyRun));
	}
	run = &sort->runs[sort->run_count++];
	memset(run, 0, sizeof(*run));
	run->file = file;
	run->rows = rows;
	run->row_words = sort->row_words;
	return run;
}

/*
 * Empties the array into a run.
 */
static void
write_run(KeySort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	KeyRun	   *run;

	open_file(sort);
	sort_rows(sort);
	run = add_run(sort, sort->file, sort->count);
	BufFileTell(sort->file, &run->file_number, &run->offset);
	BufFileWrite(sort->file, sort->rows, sort->count * sort->row_words * sizeof(uint64));
	sort->count = 0;
	MemoryContextSwitchTo(caller);
}

/*
 * Fills a run's buffer. False: the run has ended.
 */
static bool
read_run(KeySort *sort, KeyRun *run)
{
	size_t		rows = Min(run->rows, sort->run_buffer_rows);
	size_t		bytes = rows * sort->row_words * sizeof(uint64);

	if (rows == 0)
		return false;
	CHECK_FOR_INTERRUPTS();
	if (BufFileSeek(run->file, run->file_number, run->offset, SEEK_SET) != 0 ||
		BufFileRead(run->file, run->buffer, bytes) != bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read temporary file of an index build: %m")));
	BufFileTell(run->file, &run->file_number, &run->offset);
	run->rows -= rows;
	run->count = rows;
	run->next = 0;
	return true;
}

static const uint64 *
run_row(const KeyRun *run)
{
	return run->buffer + run->next * run->row_words;
}

/* Comparator of the heap, which has the greatest on top: the run with the least row is the greatest. */
static int
compare_runs(Datum a, Datum b, void *argument)
{
	const KeyRun *left = (const KeyRun *) DatumGetPointer(a);
	const KeyRun *right = (const KeyRun *) DatumGetPointer(b);

	return compare_rows(run_row(right), run_row(left), left->row_words);
}

/*
 * Gives the array's memory to the runs' buffers, and reads the first rows of each.
 */
static void
begin_merge(KeySort *sort)
{
	size_t		bytes = Max(sort->memory / sort->run_count, RUN_BUFFER_BYTES_LEAST);

	if (sort->rows != NULL)
		pfree(sort->rows);
	sort->rows = NULL;
	sort->run_buffer_rows = bytes / (sort->row_words * sizeof(uint64));
	sort->heap = binaryheap_allocate(sort->run_count, compare_runs, NULL);
	for (int i = 0; i < sort->run_count; i++)
	{
		KeyRun	   *run = &sort->runs[i];

		run->buffer = MemoryContextAllocHuge(CurrentMemoryContext, bytes);
		if (read_run(sort, run))
			binaryheap_add_unordered(sort->heap, PointerGetDatum(run));
	}
	binaryheap_build(sort->heap);
}

/* ---- several processes ---- */

Size
key_sort_share_bytes(int participants)
{
	return offsetof(KeySortShare, part) + mul_size(participants, sizeof(KeySortPart[2]));
}

void
key_sort_share_initialize(KeySortShare *share, int participants, dsm_segment *segment)
{
	memset(share, 0, key_sort_share_bytes(participants));
	share->participants = participants;
	SharedFileSetInit(&share->files, segment);
}

void
key_sort_share_attach(KeySortShare *share, dsm_segment *segment)
{
	SharedFileSetAttach(&share->files, segment);
}

void
key_sort_hand_over_to(KeySort *sort, KeySortShare *share, int participant, bool high)
{
	Assert(participant < share->participants);
	sort->share = share;
	sort->participant = participant;
	sort->high = high;
}

/*
 * Moves the strings into the file, as one run of rows.  Returns their number.
 */
static size_t
move_strings(KeySort *sort)
{
	size_t		row_bytes = sort->row_words * sizeof(uint64);
	uint64	   *rows = palloc(MOVED_ROWS * row_bytes);
	size_t		total = 0;
	int			count = 0;
	TreeKey		key;
	bool		dead;

	while (next_string(sort, &key, &dead))
	{
		encode_row(&key, dead, sort->words, rows + count++ * sort->row_words);
		total++;
		if (count < MOVED_ROWS)
			continue;
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(sort->file, rows, count * row_bytes);
		count = 0;
	}
	BufFileWrite(sort->file, rows, count * row_bytes);
	pfree(rows);
	return total;
}

/*
 * Leaves everything sorted in the shared file, and says how much it is.
 */
static void
hand_over(KeySort *sort)
{
	KeySortPart *part = &sort->share->part[sort->participant][sort->high ? 1 : 0];

	open_file(sort);
	if (sort->strings != NULL)
	{
		tuplesort_performsort(sort->strings);
		part->rows = part->run_rows = move_strings(sort);
	}
	else
	{
		if (sort->count > 0)
			write_run(sort);
		/* The array was full each time but the last. */
		for (int i = 0; i < sort->run_count; i++)
			part->rows += sort->runs[i].rows;
		part->run_rows = sort->run_count > 1 ? sort->capacity_most : part->rows;
	}
	BufFileExportFileSet(sort->file);
	BufFileClose(sort->file);
	sort->file = NULL;
	sort->run_count = 0;
}

/*
 * Adds a participant's runs.
 */
static void
add_part(KeySort *sort, KeySortShare *share, int participant, bool high)
{
	const KeySortPart *part = &share->part[participant][high ? 1 : 0];
	char		name[SHARED_NAME_BYTES];
	BufFile    *file;

	if (part->rows == 0)
		return;
	name_part(name, participant, high);
	file = BufFileOpenFileSet(&share->files.fs, name, O_RDONLY, false);
	for (size_t done = 0; done < part->rows; done += part->run_rows)
	{
		KeyRun	   *run = add_run(sort, file, Min(part->run_rows, part->rows - done));

		run->offset = (off_t) (done * sort->row_words * sizeof(uint64));
	}
}

KeySort *
key_sort_take_over(const ShermanKeys *keys, int memory_kb, KeySortShare *share, bool high)
{
	KeySort    *sort = make_sort(keys, memory_kb);

	for (int i = 0; i < share->participants; i++)
		add_part(sort, share, i, high);
	if (sort->run_count > 0)
		return sort;
	key_sort_end(sort);
	return NULL;
}

/* ---- the interface ---- */

/*
 * Makes sure that there is room for one row more.
 */
static void
reserve_row(KeySort *sort)
{
	size_t		capacity = Min(sort->capacity * 2, sort->capacity_most);

	if (capacity == sort->capacity)
	{
		write_run(sort);
		return;
	}
	sort->rows = repalloc_huge(sort->rows, capacity * sort->row_words * sizeof(uint64));
	sort->capacity = capacity;
}

void
key_sort_put(KeySort *sort, const TreeKey *key, bool dead)
{
	uint64	   *row;

	if (sort->strings != NULL)
	{
		put_string(sort, key, dead);
		return;
	}
	if (unlikely(sort->count == sort->capacity))
		reserve_row(sort);
	row = sort->rows + sort->count++ * sort->row_words;
	encode_row(key, dead, sort->words, row);
}

void
key_sort_perform(KeySort *sort)
{
	if (sort->share != NULL)
		hand_over(sort);
	else if (sort->strings != NULL)
		tuplesort_performsort(sort->strings);
	else if (sort->run_count == 0)
		sort_rows(sort);
	else
	{
		if (sort->count > 0)
			write_run(sort);
		begin_merge(sort);
	}
}

bool
key_sort_next(KeySort *sort, TreeKey *key, bool *dead)
{
	KeyRun	   *run = NULL;
	const uint64 *row;

	if (sort->strings != NULL)
		return next_string(sort, key, dead);
	if (sort->heap == NULL)
	{
		if (sort->next == sort->count)
			return false;
		row = sort->rows + sort->next++ * sort->row_words;
	}
	else
	{
		if (binaryheap_empty(sort->heap))
			return false;
		run = (KeyRun *) DatumGetPointer(binaryheap_first(sort->heap));
		row = run_row(run);
	}
	decode_row(row, sort->words, key, dead);
	if (run == NULL)
		return true;
	if (++run->next < run->count || read_run(sort, run))
		binaryheap_replace_first(sort->heap, PointerGetDatum(run));
	else
		(void) binaryheap_remove_first(sort->heap);
	return true;
}

void
key_sort_end(KeySort *sort)
{
	if (sort->strings != NULL)
		tuplesort_end(sort->strings);
	if (sort->heap != NULL)
		binaryheap_free(sort->heap);
	for (int i = 0; i < sort->run_count; i++)
	{
		KeyRun	   *run = &sort->runs[i];

		if (i == 0 || run->file != run[-1].file)
			BufFileClose(run->file);
		pfree(run->buffer);
	}
	if (sort->runs != NULL)
		pfree(sort->runs);
	if (sort->rows != NULL)
		pfree(sort->rows);
	pfree(sort);
}
