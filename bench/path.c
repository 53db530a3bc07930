/*
 * path.c
 *		Records which functions of sherman.so run inside callbacks of the access method, for script/bench path: a module that is
 *		loaded before the server's libraries, so that a library built with -finstrument-functions calls the two functions below.
 */
#define _GNU_SOURCE

#include "postgres.h"

#include <dlfcn.h>

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

#define FUNCTIONS_MAX 4096
#define CALLBACKS_MAX 16

static void *callbacks[CALLBACKS_MAX];
static int callback_count;
static void *functions[FUNCTIONS_MAX]; /* that ran inside a callback */
static int function_count;
static bool recording;
static int depth; /* calls in progress, the callback's among them; 0: none is in progress */
static int deepest;

extern void __cyg_profile_func_enter(void *function, void *caller);
extern void __cyg_profile_func_exit(void *function, void *caller);

static bool
contains(void *const *of, int count, const void *function)
{
	for (int i = 0; i < count; i++)
		if (of[i] == function)
			return true;
	return false;
}

void
__cyg_profile_func_enter(void *function, void *caller)
{
	if (!recording || (depth == 0 && !contains(callbacks, callback_count, function)))
		return;
	depth++;
	deepest = Max(deepest, depth);
	if (function_count < FUNCTIONS_MAX && !contains(functions, function_count, function))
		functions[function_count++] = function;
}

void
__cyg_profile_func_exit(void *function, void *caller)
{
	if (recording && depth > 0)
		depth--;
}

/* path_begin(text, ...): what runs inside these callbacks from now on is recorded. */
PG_FUNCTION_INFO_V1(path_begin);
Datum
path_begin(PG_FUNCTION_ARGS)
{
	callback_count = function_count = depth = deepest = 0;
	for (int i = 0; i < PG_NARGS(); i++)
	{
		void *callback = dlsym(RTLD_DEFAULT, text_to_cstring(PG_GETARG_TEXT_PP(i)));

		if (callback == NULL)
			elog(ERROR, "there is no callback %s", text_to_cstring(PG_GETARG_TEXT_PP(i)));
		callbacks[callback_count++] = callback;
	}
	recording = true;
	PG_RETURN_VOID();
}

/* Ends that. The functions, one a line, by their offset in the library; and how deep calls went. */
PG_FUNCTION_INFO_V1(path_end);
Datum
path_end(PG_FUNCTION_ARGS)
{
	StringInfoData text;

	recording = false;
	initStringInfo(&text);
	for (int i = 0; i < function_count; i++)
	{
		Dl_info info;

		if (dladdr(functions[i], &info) != 0)
			appendStringInfo(&text, "0x%lx\n",
			                 (unsigned long) ((char *) functions[i] - (char *) info.dli_fbase));
	}
	appendStringInfo(&text, "deep %d", deepest);
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}
