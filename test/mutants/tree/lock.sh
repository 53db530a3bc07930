# Mutants of tree/lock: its safeguards, removed one at a time (test/README). Sourced.

mutate long_waits_are_awake test_techniques wait_limited \
	's/if \(wait < MICROSECONDS_PER_MS\)/if (wait > 0)/'
mutate not_vouched_for test_leaf_cache leaf_cache_key \
	's/ && \(client->vouched & 1ull << node\) == 0\)/ \&\& false)/'
mutate swaps_repeated_at_once test_contention back_off_wait \
	's/if \(attempt > BACK_OFF_SPINS\)/if (true)\n\t\tclient_pause(client);\n\telse if (attempt > BACK_OFF_SPINS)/'
mutate adaptive_is_awake_for_ever test_techniques back_off_wait \
	's/if \(attempt > BACK_OFF_SPINS\)/if (false)/'
mutate limit_does_not_rise "test_techniques test_contention" back_off_count \
	's/own->doublings\+\+;/(void) own;/'
mutate limit_does_not_fall test_techniques back_off_count \
	's/own->doublings--;/(void) own;/'
mutate leaves_kept_that_others_write test_leaf_cache sets_of \
	's/ \|\| !shared_techniques\(options\)->exclusive//'
mutate frame_gets_another_place test_leaf_cache places_give \
	's/if \(\*place != 0\)/if (false)/'
mutate pieces_of_an_image_are_one test_leaf_cache leaf_cache.c:image_store \
	's/leaf_image\(table, number\+\+\)/leaf_image(table, number)/'
mutate places_outlive_their_cache test_leaf_cache leaf_cache_shared_reset \
	's/\ttable->places = 0;\n//'
mutate closed_node_answered_for test_leaf_cache leaf_cache_key \
	's/!node_is_open\(client->shared, node\) \|\| //'
mutate long_leaf_kept test_leaf_cache leaf_cache_key \
	's/ tree->geometry.leaf_bytes > table->longest \|\|//' \
	span_of \
	's/assert\(frames <= LEAF_GROUP\);//'
mutate image_of_another_epoch test_leaf_writes image_find \
	's/word_load\(&frame->head\.epoch\) == key->epoch &&\s+//'
mutate image_of_a_node_that_was_fenced test_leaf_cache image_find \
	's/ &&\s+word_load\(&frame->fences\) == key->fences//'
mutate void_image_believed test_leaf_writes image_find \
	's/ && \(!valid \|\| frame_is_valid\(frame\)\)\)/)/'
mutate unfinished_image_believed test_leaf_writes image_find \
	's/\*sequence % 2 == 0 && //' \
	image_take \
	's/!sequence_end_read\(&frame->head\.sequence, sequence\) \|\|\n\s+//'
mutate image_believed_during_writes test_leaf_writes leaf_image_void \
	's/__atomic_store_n\(&leaf_frame\(table, number\)->valid, IMAGE_VOID, __ATOMIC_SEQ_CST\);/;/'
mutate write_does_not_end_reads test_leaf_writes leaf_image_void \
	's/before = __atomic_fetch_add\(version_of\(table, entry\), 1, __ATOMIC_SEQ_CST\);/before = 0;/'
mutate image_changes_while_it_is_copied test_leaf_writes image_take \
	's/!sequence_end_read\(&frame->head\.sequence, sequence\) \|\|\n\s+//'
mutate read_does_not_see_who_writes test_leaf_writes version_stands \
	's/key->version % 2 == 0 &&\n\s+//'
mutate image_of_a_read_that_met_a_write test_leaf_writes leaf_cache.c:frame_fill \
	's/valid = owner \|\| version_stands\(table, key\);/valid = true;/'
mutate group_divided_beside_its_frames test_leaf_cache leaf_cache.c:frame_fill \
	's/\(group_span\(table, number\) != span && !group_divide\(table, number, span\)\)/false/'
mutate hot_image_pushed_out test_leaf_cache frame_worth_by_use \
	's/return 1 \+ \(uint64_t\) \(UINT32_MAX - age\);/return 1 + (uint64_t) age;/'
mutate free_frame_not_given test_leaf_cache image_admit \
	's/\(room && victim\.worth > 0\)/room/'
mutate every_leaf_admitted test_leaf_cache image_offer \
	's/client_random\(client\) % 100 >= table->admission_percent/false/'
mutate vacuum_wave_believes_what_was_written test_vacuum=--cached leaf_cache_unwritten \
	's/return key->kept && key->epoch == tree->epoch && version_stands\(tree->client->shared->leaves, key\);/return key->kept;/'
mutate generation_not_compared test_leaf_writes leaf_cache_has_generation \
	's/ && kept == generation;/;/'
mutate lock_recorded_at_a_closed_node test_nodes lock_handle_begin \
	's/if \(!elsewhere && node_is_open\(client->shared, lock->place\)\)/if (!elsewhere)/'
mutate entry_kept_at_a_closed_node test_nodes lock_handle_begin \
	's/(\tresume_interrupts\(client\);\n)\tentry_release\(client, table_entry\(table, lock->place, lock->index\)\);\n(\treturn elsewhere)/$1$2/'
mutate lost_swap_not_looked_at test_lock_doubt word_try \
	's/\*won = status == TREE_OK && word == lock->word;/*won = false;/'
mutate read_before_lock sim_torture word_try \
	's/status = access_execute\(tree, lock->memory_node, ops, with_read \? 2 : 1\);/if (with_read)\n\t\t(void) access_execute(tree, lock->memory_node, &ops[1], 1);\n\tstatus = access_execute(tree, lock->memory_node, ops, 1);/'
mutate lost_lock_read_all_the_same sim_explore word_try \
	's/\*won = \*read = false;/*won = false;/; s/\*read = \*won && with_read;/*read |= with_read;/'
mutate locked_leaf_is_read test_leaf_cache node_read_locked \
	's/\tif \(!read && node_is_leaf\(tree, pointer, bytes\)\)\n\t\tread = leaf_cache_take_locked\(.*?\);\n//'
mutate torn_means_not_found test_damage node_read_locked \
	's/return client_fail\(client, TREE_DAMAGED, "node %016llx of tree %016llx is torn.*?;/return TREE_NOT_FOUND;/s'
mutate torn_is_believed_under_lock test_damage node_read_locked \
	's/if \(verdict == NODE_GOOD\)\n\t\treturn TREE_OK;/if (verdict != NODE_STALE)\n\t\treturn TREE_OK;/'
mutate torn_begins_anew test_damage node_read_locked \
	's/if \(torn == LOCKED_TORN_READS\)/if (false)/'
mutate torn_stays_locked test_damage node_read_locked \
	's/released = lock_release\(tree, lock, pointer, NULL, 0\);/released = TREE_OK;/'
mutate exclusive_is_always_free test_techniques lock_is_free \
	's/\*free = !entry_is_owned\(.*?\);/*free = true;/'
mutate leaked_lock_blocks test_replicas=--network lock_and_read \
	's/if \(status == TREE_UNREACHABLE && tree->replicas != NULL && lock_handle_abandon\(client\)\)/if (false \&\& lock_handle_abandon(client))/'
mutate chosen_walks_away test_lock lock_and_read \
	's/if \(status != TREE_OK && !chosen\)/if (status != TREE_OK)/'
mutate other_word_left_behind test_replay leaked_word_free \
	's/waiter->next_word != 0 \? 2 : 1/1/'
mutate holder_elsewhere_robbed test_nodes lock_node_fenced \
	's/if \(__atomic_load_n\(&waiter->holds, __ATOMIC_ACQUIRE\) != memory_node \+ 1\)/if (waiter->lock_memory_node != memory_node)/; s/(index = __atomic_load_n.*?\n)\t\tif \(waiter_take_over\(waiter, memory_node\)\)/$1\t\tfor (volatile int i = 0; i < 300000; i++)\n\t\t\t;\n\t\tif (__atomic_exchange_n(&waiter->holds, 0, __ATOMIC_ACQ_REL) != 0)/'
mutate image_believed_in_doubt test_leaf_writes lock_handle_leak \
	's/(\tlock->held = false;\n)(\tresume_interrupts\(client\);\n\treturn status;)/$1\tleaf_cache_write_ends(client, lock_entry_number(client, lock->place, lock->index));\n$2/'
mutate fenced_lock_is_forgotten test_replicas lock_handle_leak \
	's/\t\tstate_replicas_doubt\(client->shared, table_waiter\([^;]*;\n//'
mutate leaked_lock_given_up test_lock_doubt lock_handle_leak \
	's/(lock->held = false;\s+resume_interrupts\(client\);\s+return status;)/lock_handle_end(client, lock); return status;/s'
mutate closed_home_is_a_doubt test_replicas lock_handle_fail \
	's/(TreeStatus freed = word_free\(tree, lock\);\n)/$1\n\t\tstate_replicas_doubt(tree->client->shared, tree->tree);/'
mutate held_word_is_free test_lock word_is_remote \
	's/return word >> LOCK_INSTANCE_SHIFT != 0;/return word != 0 \&\& word >> LOCK_INSTANCE_SHIFT == 0;/'
mutate wave_leaked_for_ever test_insert_many_faults leaked_settle \
	's/(\tleaked_release\(client, waiter, node\);)/\t;/'
mutate wave_doubt_gives_back test_insert_many_faults lock_many_release \
	's/if \(\(client->doubt & 1ull << lock->place\) == 0\)/if (true)/'
mutate handover_without_bound test_lock word_pass_on \
	's/chosen->passed_handovers = lock->handovers \+ 1;/chosen->passed_handovers = 0;/'
mutate image_of_another_node test_lock word_pass_on \
	's/chosen->tree == tree->tree && chosen->address == pointer_address\(pointer\) &&//s'
mutate lost_chain_leaves_replicas_apart test_replicas writes_settle \
	's/status = replicas_restore\(tree, pointer, bytes\);/status = TREE_OK;/'
mutate lost_unlock_believed test_lock_doubt unlock_settle \
	's/if \(word == lock->word\)/if (false)/'
mutate lost_unlock_taken_for_landed sim_torture unlock_settle \
	's/if \(word == lock->word\) \/\* it did not/if (false) \/* it did not/'
mutate unlock_before_the_writes sim_torture write_and_swap \
	's/status = access_execute\(tree, lock->memory_node, writes, count \+ 1\);/status = access_execute(tree, lock->memory_node, &writes[count], 1);\n\t\tif (status == TREE_OK && count > 0)\n\t\t\tstatus = access_execute(tree, lock->memory_node, writes, count);/'
mutate write_behind_unlock test_tree_faults write_and_swap \
	's/writes\[count\] = word_op\(FABRIC_COMPARE_SWAP, lock->index, lock->word, next\);/memmove(writes + 1, writes, (size_t) count * sizeof(*writes)); writes[0] = word_op(FABRIC_COMPARE_SWAP, lock->index, lock->word, 0);/'
mutate image_not_brought_up_to_date test_leaf_writes node_wrote \
	's/\tif \(count > 0\)\n\t\tleaf_cache_wrote\(.*?\);/\t(void) tree, (void) count, (void) pointer, (void) after, (void) bytes;/'
mutate image_of_a_write_that_is_lost test_leaf_writes lock_write_and_release \
	's/(\tstatus = write_and_keep\()/\tnode_wrote(tree, count, pointer, after, bytes);\n$1/'
mutate handed_over_with_the_same_word test_replay write_and_renew \
	's/uint64_t next = word_make\(tree->client, lock->place\);/uint64_t next = lock->word;/'
mutate lost_other_word_taken_for_landed sim_torture write_and_renew \
	's/if \(word != next\) /if (false) /'
mutate handover_before_acknowledgment test_tree_faults lock_write_and_release \
	's/(\tstatus = write_and_keep\()/\tif (pass \&\& word_pass_on(tree, lock, pointer, NULL, 0))\n\t{\n\t\tif (count > 0)\n\t\t\taccess_execute(tree, 0, writes, count);\n\t\treturn TREE_OK;\n\t}\n$1/'
mutate redo_not_written test_loop lock_many_rewrite_ops \
	's/if \(bytes > capabilities->one_packet\)/if (bytes > NODE_MAX_BYTES)/'
mutate no_redo test_tree_faults lock_many_rewrite_ops \
	's/if \(bytes > capabilities->one_packet\)/if (bytes > NODE_MAX_BYTES)/'
mutate wave_takes_what_others_hold test_insert_many_faults entry_try \
	's/owned = entry->owner == 0;/owned = true;/'
mutate tail_forgotten test_lock entry_dequeue \
	's/if \(entry->tail == slot \+ 1\)\s+entry->tail = before;//s'
mutate sleeps_without_another_look test_lock queue_wait \
	's/for \(int i = 0; i < WAIT_SPINS && waiter_is_queued\(waiter\); i\+\+\)\n(\t+client_pause\(client\);)/for (int i = 0; i < WAIT_SPINS; i++)\n{\nif (!waiter_is_queued(waiter))\nreturn TREE_OK;\n$1\n}/; s/if \(!waiter_is_queued\(waiter\)\)(\n\t\t\treturn TREE_OK;)/if (false)$1/'
mutate last_come_first_served test_lock entry_acquire \
	's/if \(entry->tail != 0\)\s+link_store\(&table_waiter\(table, entry->tail - 1\)->next, mine\);\s+else\s+link_store\(&entry->head, mine\);\s+entry->tail = mine;/waiter->next = entry->head; entry->head = mine; if (entry->tail == 0) entry->tail = mine;/s'
mutate lock_waits_alone test_deadline entry_acquire \
	's/\*deadline = client_deadline\(client\) \+/client_silence_ends(client); *deadline = client_deadline(client) +/'
mutate all_lock_words_used test_lock lock_word_of \
	's/words = table->options\.lock_words;/(void) table;/'
mutate late_read_believed test_damage read_in_time \
	's/\*late = client_now_us\(client\) - begin > READ_BOUND_US;/*late = false;/'
mutate time_bound_where_reads_are_atomic test_damage read_in_time \
	's/timed = \(access_capabilities.*?;/timed = true;/s'
mutate missing_leaf_sum_not_said test_damage leaf_sum_repair \
	's/int first = .*?;/int first = 1;/'
mutate leaf_sum_not_repaired test_damage read_locked \
	's/if \(leaf_sum_is_due\(&tree->geometry, client->image\)\)/if (false)/'
mutate torn_is_stale test_damage access_read \
	's/status = read_locked\(tree, pointer, bytes, image\);/status = TREE_RETRY;/' \
	read_locked \
	's/static TreeStatus\nread_locked/static TreeStatus __attribute__((unused))\nread_locked/'
mutate position_older_than_the_cells test_reader access_read \
	's/status = positions_read_again\(tree, &pointer, 1, &image, &verdict\);//'
mutate positions_older_than_the_cells test_reader access_read_leaves \
	's/status = positions_read_again\(tree, pointers, count, images, verdicts\);/(void) images;/'
mutate reader_gives_up_torn_leaves test_reader access_descends_again \
	's/ && !\(torn && in_time\)\)/)/'
mutate torn_for_readers_is_damaged test_reader access_no_way \
	's/if \(tree->torn\)/if (false)/'
mutate late_leaves_believed test_damage read_chain \
	's/verdicts\[i\] = late \? NODE_TORN : /verdicts[i] = /'
mutate scan_wave_believes_what_was_lost test_scan_wave read_wave \
	's/if \(status == TREE_RETRY \|\|\s+\(late/if ((late/'
mutate scan_waits_for_one_memory_node_after_the_other test_scan_wave access_read_leaves \
	's/if \(chain_length\(pointers, count\) < count\)\n/if (false)\n/'
mutate lost_image_is_taken_for_gone torture=workers-lose-64 access_read_overflow \
	's/access_repeat\(tree, memory_node, ops, posted, "reads of images"\)/access_execute(tree, memory_node, ops, posted)/'
mutate image_not_proved test_scan access_read_overflow \
	's/if \(image_hash\(buffers\[i\], references\[i\].bytes\) != references\[i\].hash\)/if (false)/'
mutate unlock_not_combined test_budget lock_write_and_release \
	's/if \(!pass && word_is_remote\(lock->word\)\)/if (false)/' \
	write_and_unlock \
	's/static TreeStatus\nwrite_and_unlock/static TreeStatus __attribute__((unused))\nwrite_and_unlock/'
mutate lock_not_combined test_budget word_win \
	's/bool ordered = /bool ordered = false \&\& /'
mutate owned_entry_is_taken test_lock entry_acquire \
	's/if \(entry->owner == 0\)/if (true)/'
mutate reader_notes_no_leaf test_reader node_read.c:access_read \
	's/\t\taccess_note_leaf\(tree, image\);\n//'
mutate reader_notes_no_leaf_of_several test_reader access_read_leaves \
	's/access_note_leaf\(tree, images\[i\]\);/;/'
