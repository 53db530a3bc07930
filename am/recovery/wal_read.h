/*
 * wal_read.h
 *		Reading WAL that may not be there.
 */
#ifndef SHERMAN_WAL_READ_H
#define SHERMAN_WAL_READ_H

#include "access/xlogreader.h"

/* Looks for a place in the WAL from a record, or the end of one, on.  InvalidXLogRecPtr: it is not there. */
typedef XLogRecPtr (*WalLook) (XLogReaderState *reader, XLogRecPtr from, XLogRecPtr end);

/*
 * What `look` finds from `from` on, up to `end` at most, if that is valid.  InvalidXLogRecPtr: nothing, or the WAL is gone, which is
 * no error.
 */
extern XLogRecPtr wal_look(WalLook look, XLogRecPtr from, XLogRecPtr end);
/* Looks: where the record at `from` ends; where the first border behind it stands, a record of a shutdown or an end of recovery. */
extern XLogRecPtr wal_read_record_end(XLogReaderState *reader, XLogRecPtr from, XLogRecPtr end);
extern XLogRecPtr wal_read_to_border(XLogReaderState *reader, XLogRecPtr from, XLogRecPtr end);
/*
 * Where, behind a record that ends at `from`, the first start of a server left its mark, or if none did `end`,
 * up to which all WAL must be readable (invalid: some start must have).  Invalid: it is not known.
 */
extern XLogRecPtr sherman_wal_cut(XLogRecPtr from, XLogRecPtr end);

#endif							/* SHERMAN_WAL_READ_H */
