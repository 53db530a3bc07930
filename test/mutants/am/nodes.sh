# Mutants of am/nodes: its safeguards, removed one at a time (test/README). Sourced.

mutate torn_lines_called_atomic sql/views sherman_capabilities_text \
	's/capabilities->flags & FABRIC_CAP_LINE_ATOMIC \?/capabilities->flags == 0 ?/'
mutate vouched_for_unheard t/082_lazy_connections sherman_node_is_heard \
	's/sherman_monotonic_us\(\) - heard < HEARD_LATELY_MS \* UINT64CONST\(1000\)/true/'
mutate vouched_for_by_the_refused t/082_lazy_connections sherman_connection_vouch \
	's/mine->failure\[0\] != .\\0. \|\|/false ||/'
mutate cancel_is_no_answer t/082_lazy_connections sherman_report \
	's/if \(status == TREE_UNREACHABLE && elevel >= ERROR\)/if (false)/'
mutate locks_of_a_device_called_hosts sql/views sherman_capabilities_text \
	's/capabilities->flags & FABRIC_CAP_DEVICE_LOCKS \?/true ?/'
mutate cancel_ends_a_wait_at_once t/008_unreachable CANCEL_PATIENCE_US \
	's/#define CANCEL_PATIENCE_US 1000000/#define CANCEL_PATIENCE_US 0/'
mutate exit_in_a_wait_runs_callbacks t/075_bystander exit_without_postmaster \
	's/\t\t_exit\(2\);/\t\tproc_exit(2);/'
mutate connection_of_an_earlier_attach_goes_on t/008_unreachable sherman_connection_refresh \
	's/connection.node\[i\].serial != pg_atomic_read_u64\(&sherman_shared->node\[i\].serial\)\)\n\t\t\tdisconnect_node/false)\n\t\t\tdisconnect_node/'
mutate worker_not_awake t/014_connection_workers connection_proxy.c:wake_worker \
	's/if \(pg_atomic_read_u32\(&connection_proxy\.shared->pid\[worker\]\) != 0\)/if (false)/'
mutate ended_worker_is_not_started_again t/014_connection_workers sherman_connection_worker_main \
	's/\tproc_exit\(1\);/\tproc_exit(0);/'
mutate full_file_system_is_a_full_node t/074_file_system_full find_report \
	's/if \(client != NULL && tree_full_by\(client\) == TREE_FULL_HOST\)/if (false)/'
mutate what_the_look_raises_is_the_error t/063_full describe_safely \
	's/dropped = CopyErrorData\(\);/PG_RE_THROW();/'
mutate postmaster_gone_is_a_cancel t/049_postmaster_gone report_interrupt \
	's/\tif \(!PostmasterIsAlive\(\)\)\n/\tif (false)\n/'
mutate everybody_reads_addresses t/070_forget sherman_away_text \
	's/sees = has_privs_of_role\(GetUserId\(\), ROLE_PG_READ_ALL_STATS\)/sees = true/'
mutate all_gone_when_cut_off t/034_rebuild time_until_gone \
	's/ \|\| sherman_shared->attached_since == 0\)/)/'
mutate waits_not_timed t/082_explain sleep_for_worker \
	's/\t\tconnection\.waited_us \+= [^\n]*\n/\t\t;\n/'
