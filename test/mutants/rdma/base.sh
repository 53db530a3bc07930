# Mutants of rdma/base: its safeguards, removed one at a time (test/README). Sourced.

mutate place_loses_its_alignment test_buffer buffer_grow \
	's/begin = buffer->begin % BUFFER_ALIGNMENT/begin = 0/'
mutate room_without_its_begin test_buffer buffer_grow \
	's/\(uint64_t\) begin \+ used \+ bytes/(uint64_t) used + bytes/'
mutate buffer_grows_in_small_steps test_buffer buffer_grow \
	's/\t\tif \(wanted < 2ull \* buffer->capacity.*?wanted = 2ull \* buffer->capacity;\n//s'
mutate write_beyond_its_frame test_security decode_operation \
	's/ \|\| bytes - CHAIN_OPERATION_BYTES < argument_bytes\(op\)//'
mutate chain_with_a_rest test_security chain_decode \
	's/return bytes == 0 \? FABRIC_OK : FABRIC_PROTOCOL;/return FABRIC_OK;/'
mutate write_after_atomic conformance chain_check \
	's/op->opcode == FABRIC_WRITE && \(\*atomic_seen \|\| /op->opcode == FABRIC_WRITE && (/'
mutate stripe_crossing conformance chain_check \
	's/\+ op->length > FABRIC_STRIPE_BYTES\)\n\t\treturn FABRIC_RANGE/+ op->length > 2 * FABRIC_STRIPE_BYTES)\n\t\treturn FABRIC_RANGE/'
mutate end_of_region_not_checked test_security chain_check \
	's/op->offset >= limit \|\| op->length > limit - op->offset/op->offset + op->length > limit/'
mutate operations_not_aligned test_security chain_check \
	's/\(\(op->offset \| op->length\) & 7\) != 0 \|\| //'
mutate unlock_by_write conformance chain_check \
	's/\(\*atomic_seen \|\| op->region == FABRIC_LOCKS\)/*atomic_seen/'
mutate readers_read_lock_words test_security chain_is_readers \
	's/ \|\| ops\[i\]\.region != FABRIC_NODES//'
mutate stale_reply_taken conformance receive_reply \
	's/frame->request == request && //'
mutate other_version_is_away_locally test_refusals control_call \
	's/method == CONTROL_HELLO && client->other_version/false/'
mutate length_of_frame_not_checked test_security frame_decode \
	's/ &&\s+frame->length <= \(frame->method == CONTROL_CHAIN \? CHAIN_MAX_BYTES : FRAME_MAX_PAYLOAD\)//'
mutate other_versions_taken test_security frame_decode \
	's/frame->version == FRAME_VERSION/true/'
mutate padding_not_cleared conformance=--tcp frame_begin \
	's/\tmemset\(place \+ end, 0, frame_wire_bytes\(frame->length\) - end\);/\t(void) end;/' memory
mutate lock_words_of_zero test_refusals capabilities_keep_contract \
	's/capabilities->lock_words == 0 \|\| //'
mutate chain_longer_than_any test_refusals capabilities_keep_contract \
	's/ && capabilities->max_chain <= FABRIC_MAX_CHAIN//'
mutate reader_of_incarnation_zero test_refusals incarnation_keeps_contract \
	's/incarnation > 0 && //'
mutate readers_reset_hides_attach conformance=--tcp reader_is_fenced \
	's/capabilities->incarnation != last->incarnation \|\|/false ||/'
mutate readers_reset_hides_new_memory test_refusals reader_is_fenced \
	's/memcmp\(capabilities->node_uuid, last->node_uuid, sizeof\(last->node_uuid\)\) != 0/false/'
mutate node_believed test_refusals frame_get_channel \
	's/if \(!capabilities_keep_contract\(capabilities, endpoint\)\)/if (false \&\& capabilities_keep_contract(capabilities, endpoint))/'
mutate first_in_quotes_is_shortened test_detail longest_quoted \
	's/if \(\(size_t\) \(end - begin\) > \*bytes\)/if (longest == NULL)/'
mutate characters_are_cut_behind_the_gap test_detail cut_middle \
	's/while \(end < text \+ bytes && is_continuation\(\*end\)\)/while (false)/'
mutate characters_are_cut_before_the_gap test_detail cut_middle \
	's/while \(begin > text && is_continuation\(\*begin\)\)/while (false)/'
mutate detail_one_byte_too_long test_detail shorten \
	's/while \(\(length = strlen\(line\)\) >= room\)/while ((length = strlen(line)) > room)/'
mutate quoted_text_goes_whole test_detail shorten \
	's/bytes <= QUOTED_LEAST/bytes <= 6/; s/\t\tif \(cut > bytes - QUOTED_LEAST \+ QUOTED_GAP_BYTES\)\n.*?;\n//s'
mutate quoted_text_of_44_bytes_is_kept test_detail shorten \
	's/bytes <= QUOTED_LEAST/bytes <= QUOTED_LEAST + 1/'
mutate detail_ends_where_its_room_does test_detail detail_format \
	's/\t\tshorten\(line, FABRIC_DETAIL_BYTES\);/\t\t(void) shorten;/'
mutate waits_share_no_deadline test_deadline fabric_deadline \
	's/if \(options->silence == NULL\)/if (true)/'
