/*
 * detail.h
 *		A line that says what went wrong, for a caller without a Fabric.
 */
#ifndef SHERMAN_DETAIL_H
#define SHERMAN_DETAIL_H

/*
 * Writes the line to `detail`, FABRIC_DETAIL_BYTES long, or nowhere: NULL.  What has no room there loses the middles of texts in
 * double quotes, the longest first: name paths whole, in quotes.
 */
extern void detail_set(char *detail, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* SHERMAN_DETAIL_H */
