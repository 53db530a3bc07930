/*
 * files.c
 *		Small files of our own below the data directory, which are complete or absent, by a checksum.
 */
#include "am/base/sherman.h"

#include <unistd.h>

#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "am/base/shared.h"

uint32
sherman_checksum(const void *data, Size bytes)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, data, bytes);
	FIN_CRC32C(crc);
	return crc;
}

bool
sherman_file_read(const char *path, void *data, Size bytes)
{
	int			file = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	ssize_t		read_bytes;

	if (file < 0)
		return false;
	read_bytes = read(file, data, bytes);
	CloseTransientFile(file);
	return read_bytes == (ssize_t) bytes;
}

bool
sherman_file_write(const char *path, const void *data, Size bytes)
{
	char		temporary[MAXPGPATH];
	int			file;
	bool		written;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = OpenTransientFile(temporary, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
	if (file < 0)
	{
		ereport(WARNING, (errcode_for_file_access(), errmsg("could not create file \"%s\": %m", temporary)));
		return false;
	}
	written = write(file, data, bytes) == (ssize_t) bytes && pg_fsync(file) == 0;
	if (!written)
		ereport(WARNING, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", temporary)));
	CloseTransientFile(file);
	return written && durable_rename(temporary, path, WARNING) == 0;
}
