# Safeguards of locks, cache, allocation and the memory node's service. Sourced by test/mutations.

mutate handover_without_bound test_lock tree/lock/lock_release.c \
	's/chosen->passed_handovers = lock->handovers \+ 1;/chosen->passed_handovers = 0;/'
mutate image_of_another_node test_lock tree/lock/lock_release.c \
	's/chosen->tree == tree->tree && chosen->address == pointer_address\(pointer\) &&//s'
mutate lost_unlock_believed test_lock_doubt tree/lock/lock_release.c \
	's/if \(word == lock->word\)/if (false)/'
mutate lost_swap_not_looked_at test_lock_doubt tree/lock/lock.c \
	's/\*won = status == TREE_OK && word == lock->word;/*won = false;/'
mutate chosen_walks_away test_lock tree/lock/lock.c \
	's/if \(status != TREE_OK && !chosen\)/if (status != TREE_OK)/'
mutate leaked_lock_given_up test_lock_doubt tree/lock/lock_handle.c \
	's/(lock->held = false;\s+resume_interrupts\(client\);\s+return status;)/lock_handle_end(client, lock); return status;/s'
mutate sleeps_without_another_look test_lock tree/lock/lock_table.c \
	's/for \(int i = 0; i < WAIT_SPINS && waiter_is_queued\(waiter\); i\+\+\)\n(\t+client_pause\(client\);)/for (int i = 0; i < WAIT_SPINS; i++)\n{\nif (!waiter_is_queued(waiter))\nreturn TREE_OK;\n$1\n}/; s/if \(!waiter_is_queued\(waiter\)\)(\n\t\t\treturn TREE_OK;)/if (false)$1/'
mutate tail_forgotten test_lock tree/lock/lock_table.c \
	's/if \(entry->tail == slot \+ 1\)\s+entry->tail = before;//s'
mutate last_come_first_served test_lock tree/lock/lock_table.c \
	's/if \(entry->tail != 0\)\s+link_store\(&table_waiter\(table, entry->tail - 1\)->next, mine\);\s+else\s+link_store\(&entry->head, mine\);\s+entry->tail = mine;/waiter->next = entry->head; entry->head = mine; if (entry->tail == 0) entry->tail = mine;/s'

mutate holder_elsewhere_robbed test_nodes tree/lock/lock_clean_up.c \
	's/if \(__atomic_load_n\(&waiter->holds, __ATOMIC_ACQUIRE\) != memory_node \+ 1\)/if (waiter->lock_memory_node != memory_node)/; s/(index = __atomic_load_n.*?\n)\t\tif \(waiter_take_over\(waiter, memory_node\)\)/$1\t\tfor (volatile int i = 0; i < 300000; i++)\n\t\t\t;\n\t\tif (__atomic_exchange_n(&waiter->holds, 0, __ATOMIC_ACQ_REL) != 0)/'
mutate lock_while_draining test_lock tree/client/chain.c \
	's/if \(fabric_is_draining\(.*?\)\)\n/if (false)\n/'

mutate frame_believed_unseen test_cache tree/shared/inner_cache.c \
	's/!sequence_end_read\(&frame->sequence, sequence\)/false/g'
mutate unfinished_frame_believed test_cache tree/shared/inner_cache.c \
	's/if \(\(sequence & 1\) != 0\)\n\t\t\tbreak;//g; s/!sequence_end_read\(&frame->sequence, sequence\)/sequence_begin_read(\&frame->sequence) != sequence/g'
mutate frames_of_the_dead_stay test_cache tree/shared/inner_cache.c \
	's/memset\(cache_sets\(table\), 0, [^;]*;//'
mutate parents_evicted test_cache tree/shared/inner_cache.c \
	's/if \(__atomic_load_n\(&frame->children, __ATOMIC_SEQ_CST\) != 0\)/if (false)/; s/if \(__atomic_load_n\(&frame->children, __ATOMIC_RELAXED\) == 0 &&\s+\(victim/if (true \&\& (victim/s'
mutate children_without_parent test_cache tree/shared/inner_cache.c \
	's/if \(attached == CACHE_NO_FRAME\)\s+return;//s'
mutate older_image_wins test_cache tree/shared/inner_cache.c \
	's/if \(frame_is_as_new\(frame, tree, image\) \|\| /if (/'
mutate first_word_only test_cache tree/node/inner.c \
	's/low = first_not_below\(g, node, bound, low, count, false, &at\);/at = DECIDE_BELOW;/'

mutate journal_left_out test_tables tree/service/service_tables.c \
	's/word_store\(&journal->valid, 1\);\s+journal_apply\(tables\);/for (size_t i = 0; i < bytes \/ 8; i++) word_store((uint64_t *) target + i, ((const uint64_t *) data)[i]);/s'
mutate pending_not_swept test_tables tree/service/service_units.c \
	's/if \(\(tables->units\[unit\] & UNIT_PENDING\) != 0\)/if (false)/'
mutate extent_freed_from_its_begin test_tables tree/service/service_units.c \
	's/unit_store\(tables, unit \+ i - 1, 0\);/unit_store(tables, unit + count - i, 0);/'
mutate journal_not_checked test_tables tree/service/service_tables.c \
	's/if \(!journal_is_sane\(tables\)\)\s+return false;//'
mutate slots_of_units_not_checked test_tables tree/service/service_units.c \
	's/ \|\|\s+slot >= tables->max_trees\)/)/'
mutate last_extent_not_checked test_tables tree/service/service_tables.c \
	's/if \(!last_extent_is_there\(tables, record, i - 1\)\)\s+return false;//; s/static bool\nlast_extent_is_there/static inline bool\nlast_extent_is_there/'
mutate tenants_of_records_not_checked test_tables tree/service/service_tables.c \
	's/record->tenant >= TABLES_TENANTS \|\| //; s/trees\+\+;\n\ttables->tenants/trees++;\n\tif (record->tenant < TABLES_TENANTS)\n\ttables->tenants/; s/\ttables->tenants\[slot->tenant\].bytes \+= bytes;/\tif (slot->tenant < TABLES_TENANTS)\n\ttables->tenants[slot->tenant].bytes += bytes;/'
mutate id_taken_twice test_service tree/service/service_tables.c \
	's/word_store\(&header->id_next, next \+ 1\);/(void) next;/; s/if \(!id_is_taken\(tables, tree\)\)/if (!id_is_taken(tables, tree) || true)/'
mutate id_in_use_given test_tenants tree/service/service_tables.c \
	's/if \(!id_is_taken\(tables, tree\)\)/if (!id_is_taken(tables, tree) || true)/'
mutate no_quarantine test_service tree/service/service_units.c \
	's/tables->slots\[tables->going_first - 1\].due_us <= now_us/(now_us > 0)/'
mutate call_twice_is_two test_service tree/service/service_calls.c \
	's/record.record.extents > 0 && request->extents != record.record.extents/false/'
mutate create_twice_is_two test_calls tree/service/service_calls.c \
	's/ServiceRecord \*slot = tables_find_token\(.*?\);/ServiceRecord *slot = NULL;/'
mutate trees_of_others test_tenants tree/service/service_tables.c \
	's/tables->slots\[i - 1\].tree == tree && tables_owns\(owner, &tables->records\[i - 1\]\)/(owner != NULL \&\& tables->slots[i - 1].tree == tree)/'
mutate trees_of_clusters test_tenants tree/service/service_tables.c \
	's/record->tenant == owner->tenant && record->record.cluster\[0\] == owner->cluster\[0\] &&\s+record->record.cluster\[1\] == owner->cluster\[1\]/record->tenant == owner->tenant/'
mutate trees_of_tenants test_tenants tree/service/service_tables.c \
	's/return record->tenant == owner->tenant && record->record/return record->record/'
mutate descent_by_id test_tenants tree/service/service_descend.c \
	's/tables_owner\(&service->tables, offset\) == record &&/tables_owner(\&service->tables, offset) != NULL \&\& tables_owner(\&service->tables, offset)->record.tree == record->record.tree \&\&/'
mutate replay_by_id test_tenants tree/service/service.c \
	's/return record != NULL && record->record.tree == image\[HEADER_TREE\] && tables_owns\(&owner, record\);/return record != NULL \&\& owner.tenant != 99 \&\& record->record.tree == image[HEADER_TREE];/'
mutate extents_grow_on test_service tree/service/service_calls.c \
	's/while \(bytes < EXTENT_MAX_BYTES && /while (/; s/assert\(bytes <= EXTENT_MAX_BYTES\);//'
mutate extents_too_large test_service tree/service/service_calls.c \
	's/bytes \* 2 \* EXTENT_PART <= tree_bytes/bytes * 2 <= tree_bytes/'
mutate generations_begin_alike test_service tree/service/service_calls.c \
	's/return \(random >> 2\) \| 1;/return random > 0;/'
mutate quota_not_looked_at test_service tree/service/service_space.c \
	's/return use->bytes \+ \*bytes <= quota \? FABRIC_BUSY : FABRIC_QUOTA;/return FABRIC_OK;/'
mutate replicas_of_half_units test_service tree/service/service_space.c \
	's/return bytes \/ 2 \/ FABRIC_UNIT_BYTES \* FABRIC_UNIT_BYTES;/return bytes \/ 2;/'
mutate given_extent_of_others test_give tree/service/service_units.c \
	's/tables->units\[unit\] != \(\(\(uint64_t\) \(slot - tables->records\) \+ 1\) \| UNIT_FIRST\)/(tables->units[unit] \& UNIT_FIRST) == 0/; s/assert\(offset != slot->last_offset\);//; s/assert\(of->units > count\);//'
mutate tenants_give_of_others two_tenants tree/service/service_units.c \
	's/tables->units\[unit\] != \(\(\(uint64_t\) \(slot - tables->records\) \+ 1\) \| UNIT_FIRST\)/(tables->units[unit] \& UNIT_FIRST) == 0/; s/assert\(offset != slot->last_offset\);//; s/assert\(of->units > count\);//'
mutate newest_extent_given test_give tree/service/service_calls.c \
	's/request->offset == slot->last_offset \|\| //'
mutate root_given test_give tree/service/service_calls.c \
	's/\|\| root_is_in\(slot, request->offset\) \|\|/|| (slot != NULL \&\& false \&\& root_is_in(slot, 0)) ||/'
mutate given_of_copied_trees test_give tree/service/service_calls.c \
	's/\s+tree_record_replica\(&slot->record, &copy\) \|\| request->newer/ (copy = 0) != 0 || request->newer/'
mutate given_by_place_alone test_give tree/service/service_calls.c \
	's/if \(header->number != request->number\)/if (false)/'
mutate given_behind_any_header test_give tree/service/service_calls.c \
	's/if \(newer->previous != request->offset && newer->previous != header->previous\)/if (false)/'
mutate given_once_only test_give tree/service/service_calls.c \
	's/ && newer->previous != header->previous\)/)/'
mutate given_stays_in_the_list test_give tree/service/service_calls.c \
	's/__atomic_store_n\(&newer->previous, header->previous, __ATOMIC_SEQ_CST\);//'
mutate given_marked_from_its_end test_tables tree/service/service_units.c \
	's/unit_store\(tables, unit \+ i, tables->units\[unit \+ i\] \| UNIT_GIVEN\);/unit_store(tables, unit + count - 1 - i, tables->units[unit + count - 1 - i] | UNIT_GIVEN);/'
mutate given_has_an_owner test_tables tree/service/service_units.c \
	's/\(UNIT_PENDING \| UNIT_GIVEN\)\) != 0\)\n\t\treturn NULL;/UNIT_PENDING) != 0)\n\t\treturn NULL;/'
mutate given_marks_not_checked test_tables tree/service/service_units.c \
	's/if \(\(tables->units\[unit\] & UNIT_GIVEN\) != 0\)\n\t\t\treturn FABRIC_PROTOCOL;//'
mutate given_without_quarantine test_give tree/service/service_units.c \
	's/if \(link->due_us > now_us\)/if (link->due_us > now_us + 1000000)/'
mutate generations_of_extents_fall test_give tree/service/service_calls.c \
	's/record->last_generation \+ GENERATION_STEP \+ random % GENERATION_STEP/(random >> 2) | 1/'
mutate epoch_goes_back test_service tree/service/service_calls.c \
	's/request->epoch < last \|\| //'
mutate onlookers_change test_tenants tree/service/service_calls.c \
	's/known != 0 && methods\[known\].changes && peer->incarnation == 0/false/'
mutate epochs_for_the_greedy test_tenants tree/service/service_tables.c \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/g'
mutate trees_for_the_greedy test_tenants tree/service/service_space.c \
	's/if \(!fabric_server_leaves_enough\(service->server, tenant, service->max_trees, used\)\)/if (used[0] > 99999)/'
mutate redo_not_replayed test_redo tree/service/service.c \
	's/\t\tmemcpy\(target, image, target_bytes\);/\t\t;/'
mutate old_redo_replayed test_redo tree/service/service.c \
	's/return dead->write_offset == target_offset && dead->write_bytes == target_bytes;/return true;/; s/if \(\(dead->write_offset == UINT64_MAX && !dead->write_unknown\) \|\| slot == NULL\)/if (slot == NULL)/'

mutate half_landed_not_replayed test_redo tree/service/service.c \
	's/return seen_old && !seen_other;/return false;/'
mutate half_landed_by_others_replayed test_redo tree/service/service.c \
	's/return seen_old && !seen_other;/return seen_old;/'
mutate half_landed_inner_not_replayed test_redo tree/service/service.c \
	's/return node_sum\(target, bytes\) != target\[HEADER_SUM\];/return false;/'
mutate later_rewrite_undone test_redo tree/service/service.c \
	's/if \(target\[HEADER_GENERATION\] != generation \|\| /if (/'

mutate replayed_whoever_has_the_lock test_replay tree/service/service.c \
	's/word == header->lock_word;/true;/'
mutate handed_over_with_the_same_word test_replay tree/lock/lock_release.c \
	's/uint64_t next = word_make\(tree->client, lock->place\);/uint64_t next = lock->word;/'
mutate other_word_left_behind test_replay tree/lock/lock_clean_up.c \
	's/waiter->next_word != 0 \? 2 : 1/1/'
mutate lost_word_taken_for_unlocked test_replay tree/service/service.c \
	's/ \|\| dead->others_dead//'

mutate stripe_crossed test_allocate tree/space/runs.c \
	's/if \(room < bytes\)/if (false)/'
mutate root_given_away test_allocate tree/client/directory.h \
	's/#define DIRECTORY_FIRST_BUMP \(2u \* FABRIC_STRIPE_BYTES\)/#define DIRECTORY_FIRST_BUMP FABRIC_STRIPE_BYTES/'
mutate generation_again test_allocate tree/space/allocate.c \
	's/node->generation = generation \+ 1;/node->generation = generation;/'
mutate chunk_not_reserved test_allocate tree/space/extent.c \
	's/op.operand = bytes;/op.operand = bytes - FABRIC_STRIPE_BYTES;/'
mutate all_at_home test_allocate tree/space/allocate.c \
	's/return own \* present \* 100 > .*?;/(void) least; return memory_node;/s'
mutate late_chunk_lost test_allocate tree/space/runs.c \
	's/if \(run.next == run.end\)/if (run.next <= run.end)/'
mutate last_stripes_end_lost test_allocate tree/space/runs.c \
	's/if \(run.blocks\)/if (false)/'

# ---- what all parts of the service use
mutate quota_of_another_tenant "test_daemon test_tenants" tree/service/service_base.c \
	's/if \(strcmp\(quotas->quotas\[i\]\.tenant, service_tenant_name\(service, tenant\)\) == 0\)/if (quotas->count > 0)/'
mutate last_quota_not_found test_service tree/service/service_base.c \
	's/i < quotas->count; i\+\+/i + 1 < quotas->count; i++/'
mutate half_a_cluster_is_the_owner test_service tree/service/service_base.c \
	's/peer->cluster\[1\]\}/0}/'
mutate any_tenant_is_the_owner test_service tree/service/service_base.c \
	's/\.tenant = peer->tenant/.tenant = 0/'
mutate more_memory_than_is_served test_resize tree/service/service_base.c \
	's/return has < service->options\.node_bytes \? has : service->options\.node_bytes;/return has;/'
mutate local_tenant_has_no_name test_service tree/service/service_base.c \
	's/tenant == 0 \? SERVICE_LOCAL_TENANT : //'
