# Mutants of am/base: its safeguards, removed one at a time (test/README). Sourced.

mutate half_written_file_takes_its_place t/044_disk_full sherman_file_write \
	's/return written && durable_rename/return durable_rename/'
mutate plans_stay_when_a_node_goes t/013_prepared sherman_invalidate_plans \
	's/\tSendSharedInvalidMessages\(&message, 1\);/\t(void) message;/'
mutate planner_needs_us t/005_nopreload sherman_all_hidden \
	's/return sherman_shared == NULL \|\| /return /'
mutate second_name_alone specs/unique-hash mode_of_first \
	's/return second != NULL \? ShareLock : ExclusiveLock;/return second != NULL ? AccessShareLock : ExclusiveLock;/'
mutate scans_queue_behind_vacuum specs/scan-barrier sherman_scan_barrier_wait \
	's/\tpg_atomic_fetch_add_u32\(turns_of\(index\), 1\);\n//'
mutate half_of_an_earlier_turn_not_waited_for specs/scan-barrier sherman_scan_barrier_wait \
	's/\twait_for_half\(index, 1 - half\);\n//'
mutate foreign_index_is_ours sql/views sherman_is_our_method \
	's/return routine->amoptions == sherman_options;/return routine->amoptions != NULL;/'
mutate port_zero t/077_settings valid_host_and_port \
	's/if \(port < 1 \|\|/if (port < 0 ||/'
mutate port_beyond_16_bits t/077_settings valid_host_and_port \
	's/port > 65535/port > 65536/'
mutate host_of_no_letters t/077_settings valid_host_and_port \
	's/ \|\| host_end == text\)/)/'
mutate brackets_around_nothing t/077_settings valid_host_and_port \
	's/return host_end - text > 2 &&/return host_end - text >= 2 \&\&/'
mutate any_character_in_a_host t/077_settings valid_host_and_port \
	's/\*c != \x27\.\x27 && \*c/*c != \x27.\x27 \&\& *c != \x27\/\x27 \&\& *c/'
mutate relative_path_of_a_memory_node t/077_settings parse_node \
	's/if \(text\[strlen\(path_scheme\)\] != \x27\/\x27\)/if (text[strlen(path_scheme)] == 0)/'
mutate address_too_long_by_one t/077_settings parse_node \
	's/if \(bytes \+ sizeof\("tcp:"\) > SHERMAN_ADDRESS_BYTES\)/if (bytes + sizeof("tcp:") > SHERMAN_ADDRESS_BYTES + 1)/'
mutate empty_element_of_the_list t/077_settings parse_node \
	's/if \(bytes == 0\)\n\t\treturn "An element of the list is empty.";\n//'
mutate same_memory_node_twice t/077_settings sherman_parse_nodes \
	's/if \(strcmp\(parsed\[i\], parsed\[count\]\) == 0\)/if (false)/'
mutate one_memory_node_too_many t/077_settings sherman_parse_nodes \
	's/if \(count == TREE_MAX_NODES\)/if (count > TREE_MAX_NODES)/; s/parsed\[TREE_MAX_NODES\]/parsed[TREE_MAX_NODES + 1]/'
mutate two_copies sql/errors REPLICAS_MOST \
	's/#define REPLICAS_MOST 1/#define REPLICAS_MOST 2/'
mutate fillfactor_as_it_is sql/build sherman_fillfactor \
	's/return Max\(options->fillfactor, FILLFACTOR_LEAST\);/return options->fillfactor;/'
mutate fillfactor_not_minded sql/build sherman_fillfactor \
	's/return Max\(options->fillfactor, FILLFACTOR_LEAST\);/return BTREE_DEFAULT_FILLFACTOR;/'
mutate wide_cells_in_postings sql/duplicates sherman_deduplicates \
	's/ \|\| format->cell_bytes > TREE_POSTING_CELL_MAX_BYTES//'
mutate duplicates_always_together sql/duplicates sherman_deduplicates \
	's/options == NULL \|\| options->deduplicate_items/true/'
mutate duplicates_never_together sql/duplicates sherman_deduplicates \
	's/return options == NULL \|\| options->deduplicate_items/return options != NULL \&\& options->deduplicate_items/'
mutate copies_of_what_is_lost_anyway sql/replicas sherman_wants_replica \
	's/ && index->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT//'
mutate functions_taken_for_postgresqls t/050_owners_code is_owners_function \
	's/\tif \(function >= FirstNormalObjectId\)\n\t\treturn true;/\tif (function >= FirstNormalObjectId)\n\t\treturn false;/'
mutate path_not_pinned t/050_owners_code owner_pin_path \
	's/if \(strcmp\(namespace_search_path, OWNER_PATH\) != 0\)/if (false)/'
mutate text_of_functions_by_the_sessions_path t/050_owners_code owner_reads_expressions \
	's/\tif \(info->ii_Expressions != NIL\)/\tif (false)/'
mutate functions_run_as_superuser t/033_healer owner_begin \
	's/SetUserIdAndSecContext\(heap->rd_rel->relowner, caller->security \| SECURITY_RESTRICTED_OPERATION\);/(void) heap;/'
mutate owners_code_runs_as_the_caller t/031_heal owner_begin \
	's/SetUserIdAndSecContext\(heap->rd_rel->relowner, /SetUserIdAndSecContext(caller->user, /'
mutate others_heal t/050_owners_code owner_check \
	's/if \(!compat_owns/if (false \&\& !compat_owns/'
mutate rebuild_does_not_give_way t/052_rebuild_all sherman_rebuild_delay \
	's/\tcompat_delay_point\(\);\n//'
mutate parts_of_the_reserve_overlap t/011_many_indexes sherman_reserve_allocate \
	's/pg_atomic_fetch_add_u64\(&reserve->used, CACHELINEALIGN\(bytes\)\)/pg_atomic_fetch_add_u64(\&reserve->used, CACHELINEALIGN(bytes) \/ 2)/'
mutate relative_directory t/077_settings check_directory \
	's/if \(!is_absolute_path\(\*value\)\)/if (false)/'
mutate number_of_core_for_recovery t/077_settings check_resource_manager_id \
	's/if \(\*value == 0 \|\| RmgrIdIsCustom\(\*value\)\)/if (true)/'
mutate restart_not_told t/070_forget sherman_list_awaits_restart \
	's/sherman_shared->embedded \? named :/sherman_shared->embedded ? false :/'
mutate wrong_list_taken t/077_settings check_memory_nodes \
	's/sherman_parse_nodes\(\*value, NULL, &problem\) >= 0/sherman_parse_nodes(*value, NULL, \&problem) >= -1/'
mutate foreign_state_file_written_over t/073_held sherman_local_write \
	's/\tif \(local_held\)\n\t\treturn false;\n//'
mutate epoch_not_noted t/044_disk_full sherman_local_change \
	's/if \(!sherman_local_write\(local\)\)\n\t\treturn false;/(void) sherman_local_write(local);/'
mutate others_wait_for_locks t/050_owners_code sherman_open_with_table \
	's/(any lock is waited for or taken. \*\/\n)\towner_check\(index_oid\);\n/$1/'
mutate who_does_not_wait_for_standbys_waits t/041_takeover_synchronous standbys_have \
	's/\tif \(!SyncRepRequested\(\)\)\n\t\treturn true;\n//'
mutate standby_of_before_the_promotion_follows t/095_failover_twice sherman_standbys_follow \
	's/ && sent_by\(&standbys\[i\]\) >= end;/ \&\& sent_by(\&standbys[i]) >= 0;/'
