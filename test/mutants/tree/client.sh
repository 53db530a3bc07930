# Mutants of tree/client: its safeguards, removed one at a time (test/README). Sourced.

mutate unsettled_not_noted test_reclaim access_lost \
	's/\t\t\tstate_leave_unsettled\(tree->state, memory_node\);\n/\t\t\t;\n/'
mutate vouched_for_in_vain test_leaf_cache access_connect \
	's/client->vouched &= ~\(1ull << memory_node\);//'
mutate trouble_of_the_low_nodes test_many_nodes 'access_settle access_doubt place_is_ready' \
	's/client->trouble \|= 1u << memory_node;/client->trouble |= 1u << memory_node % 8;/'
mutate doubt_not_ended sim_torture access_settle \
	's/fabric = fabric_reset\(client->options.endpoints\[memory_node\]\);/fabric = FABRIC_OK;/'
mutate lock_while_draining test_lock place_is_ready \
	's/if \(fabric_is_draining\(.*?\)\)\n/if (false)\n/'
mutate name_of_a_chain_beyond_its_room test_directory name_chain \
	's/i < count && used < CRASH_POINT_NAME_BYTES/i < count/'
mutate name_of_a_chain_is_its_first test_directory name_chain \
	's/i == 0 \? "" : " "/" "/'
mutate chain_ends_without_a_step test_directory crash_point.c:crash_point_execute \
	's/(status = fabric_execute\(endpoint, ops, count\);\n)\tif \(client->options\.environment\.crash_point != NULL\)\n\t\ttell\(client, name, false\);\n/$1/'
mutate chain_begins_behind_its_step test_directory crash_point.c:crash_point_execute \
	's/\tname_chain\(ops, count, name\);\n\ttell\(client, name, true\);\n(\tstatus = fabric_execute\(endpoint, ops, count\);\n)/\tname_chain(ops, count, name);\n$1\ttell(client, name, true);\n/'
mutate posted_chain_without_a_step test_directory crash_point.c:step_post \
	's/(FabricOp \*ops, int count, uint64_t \*ticket\)\n\{\n\tchar name\[CRASH_POINT_NAME_BYTES\];\n\n\tif \()client->options/$1false \&\& client->options/'
mutate awaited_chain_without_a_step test_directory crash_point.c:step_wait \
	's/(fabric_wait\(endpoint, ticket\);\n\tchar name\[CRASH_POINT_NAME_BYTES\];\n\n\tif \()client->options/$1false \&\& client->options/'
mutate call_without_steps test_directory crash_point.c:crash_point_call \
	's/tell\(client, method_names\[method\], true\);/(void) method_names;/'
mutate call_ends_without_a_step test_directory crash_point.c:crash_point_call \
	's/tell\(client, method_names\[method\], false\);/(void) method_names;/'
mutate record_does_not_name_member test_nodes directory_join \
	's/return directory_call\(client, home, DIRECTORY_UPDATE, &record, sizeof\(record\), NULL, 0\);/return TREE_OK;/'
mutate root_of_replicas_without_sum test_replicas directory.c:root_write \
	's/\t\tgeometry.twins = [^;]*;\n/\t\t;\n/'
mutate shares_left_behind test_nodes tree_drop \
	's/\(void\) drop_at\(client, i, tree\);/;/'
mutate root_given_away test_allocate DIRECTORY_FIRST_BUMP \
	's/#define DIRECTORY_FIRST_BUMP \(2u \* FABRIC_STRIPE_BYTES\)/#define DIRECTORY_FIRST_BUMP FABRIC_STRIPE_BYTES/'
mutate answer_may_be_shorter test_directory directory_call \
	's/if \(got != reply_bytes\)/if (got > reply_bytes)/'
mutate lost_call_is_in_no_doubt test_directory directory_call \
	's/\t\t\t\tclient->doubt \|= 1ull << memory_node;\n//'
mutate doubt_not_settled_before_a_call test_directory directory_call \
	's/if \(client->doubt & 1ull << memory_node\)/if (false)/'
mutate repeated_call_not_stopped test_directory directory_call \
	's/if \(attempt > 0 && client_should_stop\(client\)\)/if (false)/'
mutate full_quota_is_full_memory test_directory directory_call \
	's/client->full_by = TREE_FULL_QUOTA;/client->full_by = TREE_FULL_MEMORY;/'
mutate full_host_is_full_memory test_directory directory_call \
	's/client->full_by = TREE_FULL_HOST;/client->full_by = TREE_FULL_MEMORY;/'
mutate too_many_trees_is_full_memory test_directory directory_call \
	's/client->full_by = TREE_FULL_TREES;/client->full_by = TREE_FULL_MEMORY;/'
mutate list_of_copies_stands_still test_directory directory_replicas \
	's/replicas->position <= \*position/replicas->position < *position/'
mutate list_of_copies_is_too_long test_directory directory_replicas \
	's/replicas->count > DIRECTORY_REPLICAS_MAX \|\|/replicas->count > DIRECTORY_REPLICAS_MAX + 1 ||/'
mutate list_of_copies_begins_anew test_replicas directory_replicas \
	's/\*position = replicas->position;/(void) position;/'
mutate copy_of_the_root_elsewhere test_replicas directory_replica_begin \
	's/copy\.copy \+ \(offset - copy\.offset\)/copy.copy/'
mutate record_of_no_memory_node test_directory tree_record_update_at \
	's/node >= client->options\.nodes/node > client->options.nodes/'
mutate record_of_no_tree test_directory tree_record_update_at \
	's/record->tree == 0 \|\| //'
mutate attempts_outlast_deadline test_deadline client_tries_again \
	's/client_now_us\(client\) < client_deadline\(client\)/true/'
mutate outruns_are_few test_tree_faults client_outrun \
	's/outrun->tries < least \|\|/false ||/'
mutate outrun_time_begins_anew test_damage client_outrun \
	's/if \(outrun->tries\+\+ == 0\)/if (++outrun->tries > 0)/'
mutate rest_does_nothing test_merge critical_reset \
	's/\tclient->sections = sections;\n.*?\n\t\tslot_leave\(client\);/\t(void) client;/s'
mutate caught_error_ends_all_calls test_inside critical_reset \
	's/\tclient->sections = sections;\n/\tclient->sections = 0;\n/'
mutate images_shared_inside test_inside critical_enter \
	's/\tif \(\*section > 0\)\n\t\tstatus = client_scratch\(client, \*section\);\n//'
mutate comparator_uses_its_tree test_inside critical_enter \
	's/if \(tree->comparing > 0 && tree->comparing <= client->sections\)/if (false)/'
mutate merge_not_alone test_merge barrier_close \
	's/if \(slot != client->slot && !slot_drain\(client, slot, deadline\)\)/if (false \&\& slot_drain(client, slot, deadline))/'
mutate new_nodes_at_lost_home test_replicas replicas_source \
	's/return replicas_state\(tree\) == TREE_REPLICAS_SECOND \? tree->replicas->node : tree->replicas->home;/return tree->replicas->home;/'
mutate extent_without_copy test_replicas replicas_extend \
	's/if \(replicas_state\(tree\) != TREE_REPLICAS_BOTH\)\s+return TREE_OK;\s+for/if (done_never())\nreturn TREE_OK;\nfor/s; s/TreeStatus\nreplicas_extend/static bool done_never(void) { return true; }\n\nTreeStatus\nreplicas_extend/'
mutate copy_written_behind_home test_replicas=--network replicas_execute \
	's/status = replica_write\(tree, ops, count\);\s+break;/status = access_execute_at(tree, memory_node, ops, count);\nreturn status == TREE_OK ? replica_write(tree, ops, count) : status;/s'
mutate copy_not_written test_replicas replicas_execute \
	's/status = replica_write\(tree, ops, count\);\s+break;/break;/s' \
	replica_write \
	's/static TreeStatus\nreplica_write/static TreeStatus __attribute__((unused))\nreplica_write/'
mutate wave_redo_image_shares_a_chain test_insert_many wave_add_together \
	's/\tif \(count > 1 && wave->filling\[memory_node\] != NULL\)\n\t\tchain_post\(wave, wave->filling\[memory_node\]\);\n\tfor/\tfor/'
mutate wave_redo_image_waits_for_others test_insert_many wave_add_together \
	's/(wave_add\(wave, memory_node, &ops\[i\]\);\n)\tif \(count > 1 && wave->filling\[memory_node\] != NULL\)\n\t\tchain_post\(wave, wave->filling\[memory_node\]\);\n/$1/'
mutate wave_lost_chain_not_settled test_insert_many_faults wave_end \
	's/wave->statuses\[node\] = access_lost\(tree, node\);/;/'
mutate crossing_cells_without_sums "test_cell_writes torture=tear-24" client_leaf_sums \
	's/g->lines_whole \? 0 : 1/0/'
mutate reader_reads_what_others_are_told test_replicas replicas_state \
	's/tree->client->options\.reader \? tree->replicas->reads : //'
mutate merged_nodes_of_a_lost_copy_do_not_say_so test_replicas replicas_execute_at_home \
	's/return access_execute_at\(tree, memory_node, ops, count\);/(void) ops, (void) count;\n\treturn TREE_OK;/'
