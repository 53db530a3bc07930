/*
 * msd_top.h
 *		`msd top`: memory nodes on a terminal, as their pages of metrics tell of them.  Private to msd.
 *
 * What it shows it reads as any scraper does, so that nobody sees more by it than before.  What a page says is of another process,
 * perhaps of none of ours: it is bounded, and nothing of it but printable characters reaches the terminal.
 */
#ifndef SHERMAN_MSD_TOP_H
#define SHERMAN_MSD_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tree/msd/msd_config.h"

/* Pages are read up to here. */
#define TOP_PAGE_BYTES (1u << 20)
#define TOP_WORD_BYTES 64u
#define TOP_MESSAGE_BYTES 120u
#define TOP_METHODS 32u
#define TOP_TENANTS 64u
#define TOP_BUCKETS 16u

/* Calls of one method; all but the name grows. */
typedef struct TopCalls
{
	char method[TOP_WORD_BYTES];
	double count;
	double seconds;
	double failed;
	double bucket[TOP_BUCKETS]; /* calls that took no longer than `limit`, the last one: all */
	double limit[TOP_BUCKETS];  /* seconds */
	uint32_t buckets;
} TopCalls;

typedef struct TopTenant
{
	char name[TOP_WORD_BYTES];
	double bytes;
	double quota; /* 0: none */
	double trees;
} TopTenant;

/* What a page of metrics says. */
typedef struct TopPage
{
	bool is_msd; /* it is a page of a memory node */
	bool draining;
	char version[TOP_WORD_BYTES];
	double uptime; /* seconds; likewise `age` of the figures */
	double age;
	double memory, used, quarantined; /* bytes */
	double trees, connections;
	double shm, tcp, verbs; /* channels */
	double chains, operations, read_bytes, written_bytes;
	double refused; /* chains, connections and keys */
	TopCalls calls[TOP_METHODS];
	uint32_t methods;
	TopTenant tenants[TOP_TENANTS];
	uint32_t tenant_count;
} TopPage;

/* A memory node: what it said last, and before that. */
typedef struct TopNode
{
	char address[MSD_ADDRESS_BYTES];
	char failure[TOP_MESSAGE_BYTES]; /* why it did not answer now; empty: it did */
	bool known;                      /* `page` was read once at least */
	bool has_before;
	TopPage page;
	TopPage before;
	double seconds; /* from `before` to `page`; without `before`: since its start */
	double read_at; /* when `page` was read, by the caller's clock */
} TopNode;

/* msd_top_page.c */

/* Reads a page's text, which is changed, into *page. */
extern void top_page_parse(char *text, TopPage *page);

/*
 * Asks the memory node for its page, for a second at most.  False: `failure` says why, and what was read before stays.  `now`: the monotonic
 * clock in seconds.
 */
extern bool top_node_read(TopNode *node, double now);

/* Takes over what a page says, `seconds` behind the last one.  A memory node that was started anew since then begins anew here. */
extern void top_node_take(TopNode *node, const TopPage *page, double seconds);

/* msd_top_screen.c */

/* Writes what is known of these, line by line. */
extern void top_screen(FILE *out, const TopNode *nodes, uint32_t count);

/* msd_top.c: the program, argv[0] being "top"; the exit status. */
extern int msd_top(int argc, char *const *argv);

#endif /* SHERMAN_MSD_TOP_H */
