/*
 * command_client.c
 *		This process's client, for a command: it waits for a memory node, and raises an error if there is none.
 */
#include "am/base/sherman.h"

#include "access/xlog.h"
#include "miscadmin.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

TreeClient *
sherman_client(void)
{
	TreeClient *client;

	if (sherman_shared == NULL || !IsPostmasterEnvironment || RecoveryInProgress())
		sherman_report_state(ERROR, NULL, SHERMAN_HIDDEN, SHERMAN_REASON_NONE);
	if (!sherman_connection_leave_standby())
		sherman_report_conflict(NULL, "this server was promoted since the transaction read it");
	if (!sherman_promotion_waits() || sherman_wait_followed())
		sherman_wait_attached(NULL);
	if (sherman_phase() != SHERMAN_PHASE_ATTACHED)
		sherman_report_away(ERROR, "sherman indexes", -1);
	client = sherman_connection_client();
	if (client == NULL)
		sherman_report(ERROR, TREE_NO_MEMORY, NULL, NULL);
	sherman_connection_refresh();
	return client;
}
