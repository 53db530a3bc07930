# Safeguards of locks, cache, allocation and the memory node's service. Sourced by test/mutations.

mutate handover_without_bound test_lock word_pass_on \
	's/chosen->passed_handovers = lock->handovers \+ 1;/chosen->passed_handovers = 0;/'
mutate image_of_another_node test_lock word_pass_on \
	's/chosen->tree == tree->tree && chosen->address == pointer_address\(pointer\) &&//s'
mutate lost_unlock_believed test_lock_doubt unlock_settle \
	's/if \(word == lock->word\)/if (false)/'
mutate lost_swap_not_looked_at test_lock_doubt word_try \
	's/\*won = status == TREE_OK && word == lock->word;/*won = false;/'
mutate chosen_walks_away test_lock lock_and_read \
	's/if \(status != TREE_OK && !chosen\)/if (status != TREE_OK)/'
mutate leaked_lock_given_up test_lock_doubt lock_handle_leak \
	's/(lock->held = false;\s+resume_interrupts\(client\);\s+return status;)/lock_handle_end(client, lock); return status;/s'
mutate sleeps_without_another_look test_lock queue_wait \
	's/for \(int i = 0; i < WAIT_SPINS && waiter_is_queued\(waiter\); i\+\+\)\n(\t+client_pause\(client\);)/for (int i = 0; i < WAIT_SPINS; i++)\n{\nif (!waiter_is_queued(waiter))\nreturn TREE_OK;\n$1\n}/; s/if \(!waiter_is_queued\(waiter\)\)(\n\t\t\treturn TREE_OK;)/if (false)$1/'
mutate tail_forgotten test_lock entry_dequeue \
	's/if \(entry->tail == slot \+ 1\)\s+entry->tail = before;//s'
mutate last_come_first_served test_lock entry_acquire \
	's/if \(entry->tail != 0\)\s+link_store\(&table_waiter\(table, entry->tail - 1\)->next, mine\);\s+else\s+link_store\(&entry->head, mine\);\s+entry->tail = mine;/waiter->next = entry->head; entry->head = mine; if (entry->tail == 0) entry->tail = mine;/s'

mutate holder_elsewhere_robbed test_nodes lock_node_fenced \
	's/if \(__atomic_load_n\(&waiter->holds, __ATOMIC_ACQUIRE\) != memory_node \+ 1\)/if (waiter->lock_memory_node != memory_node)/; s/(index = __atomic_load_n.*?\n)\t\tif \(waiter_take_over\(waiter, memory_node\)\)/$1\t\tfor (volatile int i = 0; i < 300000; i++)\n\t\t\t;\n\t\tif (__atomic_exchange_n(&waiter->holds, 0, __ATOMIC_ACQ_REL) != 0)/'
mutate lock_while_draining test_lock place_is_ready \
	's/if \(fabric_is_draining\(.*?\)\)\n/if (false)\n/'

mutate frame_believed_unseen test_cache 'cache_find_child cache_copy' \
	's/!sequence_end_read\(&frame->sequence, sequence\)/false/'
mutate unfinished_frame_believed test_cache 'cache_find_child cache_copy' \
	's/if \(\(sequence & 1\) != 0\)\n\t\t\tbreak;//; s/!sequence_end_read\(&frame->sequence, sequence\)/sequence_begin_read(\&frame->sequence) != sequence/'
mutate frames_of_the_dead_stay test_cache cache_shared_reset \
	's/memset\(cache_sets\(table\), 0, [^;]*;//'
mutate parents_evicted test_cache frame_evict \
	's/if \(__atomic_load_n\(&frame->children, __ATOMIC_SEQ_CST\) != 0\)/if (false)/' \
	victim_choose \
	's/if \(__atomic_load_n\(&frame->children, __ATOMIC_RELAXED\) == 0 &&\s+\(victim/if (true \&\& (victim/s'
mutate children_without_parent test_cache cache_put \
	's/if \(attached == CACHE_NO_FRAME\)\s+return;//s'
mutate older_image_wins test_cache cache_refresh \
	's/if \(frame_is_as_new\(frame, tree, image\) \|\| /if (/'
mutate first_word_only test_cache node_search_inner \
	's/low = first_not_below\(g, node, bound, low, count, false, &at\);/at = DECIDE_BELOW;/'

mutate journal_left_out test_tables journal_store \
	's/word_store\(&journal->valid, 1\);\s+journal_apply\(tables\);/for (size_t i = 0; i < bytes \/ 8; i++) word_store((uint64_t *) target + i, ((const uint64_t *) data)[i]);/s'
mutate pending_not_swept test_tables tables_units_open \
	's/if \(\(tables->units\[unit\] & UNIT_PENDING\) != 0\)/if (false)/'
mutate extent_freed_from_its_begin test_tables extent_free \
	's/unit_store\(tables, unit \+ i - 1, 0\);/unit_store(tables, unit + count - i, 0);/'
mutate journal_not_checked test_tables tables_check \
	's/if \(!journal_is_sane\(tables\)\)\s+return false;//'
mutate slots_of_units_not_checked test_tables tables_units_open \
	's/ \|\|\s+slot >= tables->max_trees\)/)/'
mutate last_extent_not_checked test_tables slots_open \
	's/if \(!last_extent_is_there\(tables, record, i - 1\)\)\s+return false;//' \
	last_extent_is_there \
	's/static bool\nlast_extent_is_there/static inline bool\nlast_extent_is_there/'
mutate tenants_of_records_not_checked test_tables records_open \
	's/record->tenant >= TABLES_TENANTS \|\| //' \
	service_tables.c:slot_enter \
	's/trees\+\+;\n\ttables->tenants/trees++;\n\tif (record->tenant < TABLES_TENANTS)\n\ttables->tenants/' \
	slots_open \
	's/\ttables->tenants\[slot->tenant\].bytes \+= bytes;/\tif (slot->tenant < TABLES_TENANTS)\n\ttables->tenants[slot->tenant].bytes += bytes;/'
mutate id_taken_twice test_service tables_id \
	's/word_store\(&header->id_next, next \+ 1\);/(void) next;/; s/if \(!id_is_taken\(tables, tree\)\)/if (!id_is_taken(tables, tree) || true)/'
mutate id_in_use_given test_tenants tables_id \
	's/if \(!id_is_taken\(tables, tree\)\)/if (!id_is_taken(tables, tree) || true)/'
mutate no_quarantine test_service tables_quarantine_end \
	's/tables->slots\[tables->going_first - 1\].due_us <= now_us/(now_us > 0)/'
mutate call_twice_is_two test_service call_extent \
	's/record.record.extents > 0 && request->extents != record.record.extents/false/'
mutate create_twice_is_two test_calls call_create \
	's/ServiceRecord \*slot = tables_find_token\(.*?\);/ServiceRecord *slot = NULL;/'
mutate trees_of_others test_tenants tables_find \
	's/tables->slots\[i - 1\].tree == tree && tables_owns\(owner, &tables->records\[i - 1\]\)/(owner != NULL \&\& tables->slots[i - 1].tree == tree)/'
mutate trees_of_clusters test_tenants tables_owns \
	's/record->tenant == owner->tenant && record->record.cluster\[0\] == owner->cluster\[0\] &&\s+record->record.cluster\[1\] == owner->cluster\[1\]/record->tenant == owner->tenant/'
mutate trees_of_tenants test_tenants tables_owns \
	's/return record->tenant == owner->tenant && record->record/return record->record/'
mutate descent_by_id test_tenants service_descend.c:node_take \
	's/tables_owner\(&service->tables, offset\) == record &&/tables_owner(\&service->tables, offset) != NULL \&\& tables_owner(\&service->tables, offset)->record.tree == record->record.tree \&\&/'
mutate replay_by_id test_tenants image_is_of_owner \
	's/return record != NULL && record->record.tree == image\[HEADER_TREE\] && tables_owns\(&owner, record\);/return record != NULL \&\& owner.tenant != 99 \&\& record->record.tree == image[HEADER_TREE];/'
mutate extents_grow_on test_service extent_bytes_next \
	's/while \(bytes < EXTENT_MAX_BYTES && /while (/; s/assert\(bytes <= EXTENT_MAX_BYTES\);//'
mutate extents_too_large test_service extent_bytes_next \
	's/bytes \* 2 \* EXTENT_PART <= tree_bytes/bytes * 2 <= tree_bytes/'
mutate generations_begin_alike test_service generation_next \
	's/return \(random >> 2\) \| 1;/return random > 0;/'
mutate quota_not_looked_at test_service quota_allows \
	's/return use->bytes \+ \*bytes <= quota \? FABRIC_BUSY : FABRIC_QUOTA;/return FABRIC_OK;/'
mutate replicas_of_half_units test_service bytes_fewer \
	's/return bytes \/ 2 \/ FABRIC_UNIT_BYTES \* FABRIC_UNIT_BYTES;/return bytes \/ 2;/'
mutate given_extent_of_others test_give tables_extent_at \
	's/tables->units\[unit\] != \(\(\(uint64_t\) \(slot - tables->records\) \+ 1\) \| UNIT_FIRST\)/(tables->units[unit] \& UNIT_FIRST) == 0/' \
	tables_extent_give \
	's/assert\(offset != slot->last_offset\);//; s/assert\(of->units > count\);//'
mutate tenants_give_of_others two_tenants tables_extent_at \
	's/tables->units\[unit\] != \(\(\(uint64_t\) \(slot - tables->records\) \+ 1\) \| UNIT_FIRST\)/(tables->units[unit] \& UNIT_FIRST) == 0/' \
	tables_extent_give \
	's/assert\(offset != slot->last_offset\);//; s/assert\(of->units > count\);//'
mutate newest_extent_given test_give call_give \
	's/request->offset == slot->last_offset \|\| //'
mutate root_given test_give call_give \
	's/\|\| root_is_in\(slot, request->offset\) \|\|/|| (slot != NULL \&\& false \&\& root_is_in(slot, 0)) ||/'
mutate given_of_copied_trees test_give call_give \
	's/\s+tree_record_replica\(&slot->record, &copy\) \|\| request->newer/ (copy = 0) != 0 || request->newer/'
mutate given_by_place_alone test_give call_give \
	's/if \(header->number != request->number\)/if (false)/'
mutate given_behind_any_header test_give call_give \
	's/if \(newer->previous != request->offset && newer->previous != header->previous\)/if (false)/'
mutate given_once_only test_give call_give \
	's/ && newer->previous != header->previous\)/)/'
mutate given_stays_in_the_list test_give call_give \
	's/__atomic_store_n\(&newer->previous, header->previous, __ATOMIC_SEQ_CST\);//'
mutate given_marked_from_its_end test_tables tables_extent_give \
	's/unit_store\(tables, unit \+ i, tables->units\[unit \+ i\] \| UNIT_GIVEN\);/unit_store(tables, unit + count - 1 - i, tables->units[unit + count - 1 - i] | UNIT_GIVEN);/'
mutate given_has_an_owner test_tables tables_owner \
	's/\(UNIT_PENDING \| UNIT_GIVEN\)\) != 0\)\n\t\treturn NULL;/UNIT_PENDING) != 0)\n\t\treturn NULL;/'
mutate given_marks_not_checked test_tables tables_units_open \
	's/if \(\(tables->units\[unit\] & UNIT_GIVEN\) != 0\)\n\t\t\treturn FABRIC_PROTOCOL;//'
mutate given_without_quarantine test_give given_end \
	's/if \(link->due_us > now_us\)/if (link->due_us > now_us + 1000000)/'
mutate generations_of_extents_fall test_give generation_next \
	's/record->last_generation \+ GENERATION_STEP \+ random % GENERATION_STEP/(random >> 2) | 1/'
mutate epoch_goes_back test_service call_epoch \
	's/request->epoch < last \|\| //'
mutate onlookers_change test_tenants service_call \
	's/known != 0 && methods\[known\].changes && peer->incarnation == 0/false/'
mutate epochs_for_the_greedy test_tenants tables_epoch \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/' \
	tables_epoch_set \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/2'
mutate trees_for_the_greedy test_tenants service_slot \
	's/if \(!fabric_server_leaves_enough\(service->server, tenant, service->max_trees, used\)\)/if (used[0] > 99999)/'
mutate redo_not_replayed test_redo service_replay \
	's/\t\tmemcpy\(target, image, target_bytes\);/\t\t;/'
mutate old_redo_replayed test_redo service_half_landed \
	's/return dead->write_offset == target_offset && dead->write_bytes == target_bytes;/return true;/' \
	service_recover \
	's/if \(\(dead->write_offset == UINT64_MAX && !dead->write_unknown\) \|\| slot == NULL\)/if (slot == NULL)/'

mutate half_landed_not_replayed test_redo image_half_landed \
	's/return seen_old && !seen_other;/return false;/'
mutate half_landed_by_others_replayed test_redo image_half_landed \
	's/return seen_old && !seen_other;/return seen_old;/'
mutate half_landed_inner_not_replayed test_redo image_half_landed \
	's/return node_sum\(target, bytes\) != target\[HEADER_SUM\];/return false;/'
mutate later_rewrite_undone test_redo image_half_landed \
	's/if \(target\[HEADER_GENERATION\] != generation \|\| /if (/'

mutate replayed_whoever_has_the_lock test_replay chain_unfinished \
	's/word == header->lock_word;/true;/'
mutate handed_over_with_the_same_word test_replay write_and_renew \
	's/uint64_t next = word_make\(tree->client, lock->place\);/uint64_t next = lock->word;/'
mutate other_word_left_behind test_replay leaked_word_free \
	's/waiter->next_word != 0 \? 2 : 1/1/'
mutate lost_word_taken_for_unlocked test_replay chain_unfinished \
	's/ \|\| dead->others_dead//'

mutate stripe_crossed test_allocate run_cut \
	's/if \(room < bytes\)/if (false)/'
mutate root_given_away test_allocate DIRECTORY_FIRST_BUMP \
	's/#define DIRECTORY_FIRST_BUMP \(2u \* FABRIC_STRIPE_BYTES\)/#define DIRECTORY_FIRST_BUMP FABRIC_STRIPE_BYTES/'
mutate generation_again test_allocate allocate_return \
	's/node->generation = generation \+ 1;/node->generation = generation;/'
mutate chunk_not_reserved test_allocate extent_run_take \
	's/op.operand = bytes;/op.operand = bytes - FABRIC_STRIPE_BYTES;/'
mutate all_at_home test_allocate memory_node_choose \
	's/return own \* present \* 100 > .*?;/(void) least; return memory_node;/s'
mutate late_chunk_lost test_allocate run_spare \
	's/if \(run.next == run.end\)/if (run.next <= run.end)/'
mutate last_stripes_end_lost test_allocate run_spare \
	's/if \(run.blocks\)/if (false)/'

# ---- what all parts of the service use
mutate quota_of_another_tenant "test_daemon test_tenants" service_quota \
	's/if \(strcmp\(quotas->quotas\[i\]\.tenant, service_tenant_name\(service, tenant\)\) == 0\)/if (quotas->count > 0)/'
mutate last_quota_not_found test_service service_quota \
	's/i < quotas->count; i\+\+/i + 1 < quotas->count; i++/'
mutate half_a_cluster_is_the_owner test_service service_owner \
	's/peer->cluster\[1\]\}/0}/'
mutate any_tenant_is_the_owner test_service service_owner \
	's/\.tenant = peer->tenant/.tenant = 0/'
mutate more_memory_than_is_served test_resize service_bytes_total \
	's/return has < service->options\.node_bytes \? has : service->options\.node_bytes;/return has;/'
mutate local_tenant_has_no_name test_service service_tenant_name \
	's/tenant == 0 \? SERVICE_LOCAL_TENANT : //'
