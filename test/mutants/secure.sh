# Safeguards of streams and keys. Sourced by test/mutations.

mutate hello_heard_in_part test_handshake hear_hello \
	's/return hear_until\(stream, whole\);/return STREAM_OK;/'
mutate hello_of_any_length test_handshake hear_hello \
	's/if \(whole > HELLO_BYTES\)/if (false)/; s/return hear_until\(stream, whole\);/return hear_until(stream, whole < HELLO_BYTES ? whole : HELLO_BYTES);/'
mutate second_hello_awaited test_handshake stream_handshake \
	's/stream->find != NULL && stream->tenant == 0\)/false)/'
mutate older_tls_allowed test_handshake stream.c:configure \
	's/set_min_proto_version\(tls, TLS1_3_VERSION\)/set_min_proto_version(tls, TLS1_2_VERSION)/'
mutate certificate_in_place_of_key test_handshake stream_handshake \
	's/SSL_session_reused\(stream->ssl\) != 1/false/' \
	stream_client \
	's/SSL_VERIFY_PEER/SSL_VERIFY_NONE/'
mutate no_forward_secrecy test_handshake stream.c:configure \
	's/SSL_CTX_clear_options\(tls, /SSL_CTX_set_options(tls, /'
mutate tickets_given test_handshake stream.c:configure \
	's/SSL_CTX_set_num_tickets\(tls, 0\)/SSL_CTX_set_num_tickets(tls, 2)/'
mutate other_hash_allowed test_handshake CIPHER_SUITES \
	's/"TLS_AES_128_GCM_SHA256:/"TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:/' \
	psk_cipher \
	's/\{0x13, 0x01\}/{0x13, 0x02}/'
mutate identity_cut_at_zero test_handshake find_session \
	's/ \|\| memchr\(identity, .\\0., bytes\) != NULL//'
mutate tenant_before_the_end test_handshake stream_tenant \
	's/stream->ready \? stream->tenant : 0/stream->tenant/'
mutate kept_in_the_read test_handshake socket_read \
	's/stream->reads_left--;//'
mutate key_stays_with_connection test_stream forget_key \
	's/SSL_SESSION_set1_master_key\(session, zeroes, sizeof\(zeroes\)\);//'
mutate errors_left_for_others test_handshake tls_status \
	's/(refuse\(stream, ERR_GET_REASON\(reason\), text\);\n)\tERR_clear_error\(\);/$1/'
mutate errors_of_others_believed test_stream stream.c:prepare \
	's/(\nprepare\(Stream \*stream\)\n\{\n)\tERR_clear_error\(\);/$1/'
mutate signal_on_plain_end test_stream socket_write \
	's/bytes, MSG_DONTWAIT \| MSG_NOSIGNAL/bytes, MSG_DONTWAIT/'
mutate signal_on_tls_end test_stream socket_write \
	's/\(size_t\) bytes, MSG_DONTWAIT \| MSG_NOSIGNAL/(size_t) bytes, MSG_DONTWAIT/'
mutate rest_of_record_forgotten test_stream stream_pending \
	's/!stream->drained && SSL_has_pending\(stream->ssl\) == 1/false/'
mutate part_of_record_is_pending test_stream stream_read \
	's/stream->drained = result != 1;/stream->drained = false;/'
mutate write_tied_to_its_address test_stream stream.c:configure \
	's/ \| SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER//'

mutate key_file_mode_not_checked test_keys open_private \
	's/\(state.st_mode & \(S_IRWXG \| S_IRWXO\)\) != 0/false/'
mutate key_file_owner_not_checked test_keys open_private \
	's/state.st_uid != geteuid\(\) && state.st_uid != 0/false/'
mutate key_of_zeroes test_keys parse_key \
	's/return any != 0;/return any == any;/'
mutate key_of_two_tenants test_keys conflict_of \
	's/memcmp\(other->key, key->key, sizeof\(key->key\)\) == 0/false/'
mutate sixteen_tenants test_keys conflict_of \
	's/!known && tenants == FABRIC_MAX_TENANTS/false/'
mutate keys_not_overwritten test_keys fabric_keys_forget \
	's/explicit_bzero\(keys, sizeof\(\*keys\)\);/keys->count = 0;/'
mutate identity_shows_the_key test_keys set_identity \
	's/"%02x", hash\[i\]/"%02x", key->key[i]/'

# Safeguards of the memory node's network side.
mutate length_of_frame_not_checked test_security frame_decode \
	's/ &&\s+frame->length <= \(frame->method == CONTROL_CHAIN \? CHAIN_MAX_BYTES : FRAME_MAX_PAYLOAD\)//'
mutate other_versions_taken test_security frame_decode \
	's/frame->version == FRAME_VERSION/true/'
mutate served_before_hello test_security request_handle \
	's/else if \(!connection->introduced\)/else if (false)/'
mutate grant_of_refused_device test_refusals handle_hello \
	's/(take_client\(server, connection, request, &client, )&verbs/$1&connection->verbs/; s/\tconnection->verbs = verbs;\n//; s/verbs \? &grant : NULL\);/connection->verbs ? &grant : NULL);/'
mutate chain_of_no_channel test_security handle_hello \
	's/\n\t\tchains_forget\(connection\);//'
mutate padding_not_cleared conformance=--tcp frame_begin \
	's/\tmemset\(place \+ end, 0, frame_wire_bytes\(frame->length\) - end\);/\t(void) end;/' memory
mutate reply_not_cleared test_calls method_run \
	's/\n\tmemset\(&out, 0, methods\[method\]\.reply_bytes\);//' memory
mutate hello_twice test_security handle_hello \
	's/ \|\| connection->introduced\)/)/'
mutate end_of_region_not_checked test_security chain_check \
	's/op->offset >= limit \|\| op->length > limit - op->offset/op->offset + op->length > limit/'
mutate operations_not_aligned test_security chain_check \
	's/\(\(op->offset \| op->length\) & 7\) != 0 \|\| //'
mutate chain_with_a_rest test_security chain_decode \
	's/return bytes == 0 \? FABRIC_OK : FABRIC_PROTOCOL;/return FABRIC_OK;/'
mutate write_beyond_its_frame test_security decode_operation \
	's/ \|\| bytes - CHAIN_OPERATION_BYTES < argument_bytes\(op\)//'
mutate units_of_all_tenants test_security apply_may_touch \
	's/return mark == channel->mark \|\|/return mark != 0 ||/'
mutate redo_slots_of_all test_security apply_may_touch \
	's/offset \/ FABRIC_REDO_BYTES == channel->channel/offset < FABRIC_UNIT_BYTES/'
mutate one_lock_table_for_all test_security memory_tenant_locks \
	's/return memory->locks \+ \(size_t\) tenant \* MEMORY_LOCK_WORDS;/return memory->locks + 0 * tenant;/'
mutate clusters_of_all_tenants test_security check_tenant \
	's/instance == NULL \|\| instance->tenant == connection->tenant \?/true ?/'
mutate channels_of_all_clusters test_security kill_old_channel \
	's/if \(old != NULL && memcmp\(old->cluster, hello->cluster.*?\n\t\treturn FABRIC_DENIED;//s'
mutate refusal_not_logged test_security accept_handshake \
	's/server_complain\(server, COMPLAINT_REFUSED, "a client was refused.*?;//s'
mutate strangers_stay test_crowd connections_round \
	's/fabric_now\(\) > connection->stranger_deadline/false/'
mutate slow_readers_read_from test_crowd takes_requests \
	's/buffer_used\(&connection->output\) < SERVER_OUTPUT_BYTES/true/'
mutate channels_for_the_greedy test_crowd channel_grant \
	's/!tenant_may_have_channel\(server, connection->tenant\)/false/'
mutate connections_for_the_greedy test_crowd accept_handshake \
	's/!tenant_may_have_connection\(server, connection->tenant\)/false/'
mutate complaints_without_end test_crowd COMPLAINTS_SAID \
	's/COMPLAINTS_SAID 5u/COMPLAINTS_SAID 5000u/'
mutate refused_chains_not_logged test_crowd give_up_device \
	's/server_complain\(server, COMPLAINT_CHAIN.*?;//s'
mutate refused_chains_all_logged test_crowd give_up_device \
	's/server_complain\(server, COMPLAINT_CHAIN,/server_log(server, FABRIC_LOG_WARNING,/'
mutate refused_requests_not_logged test_crowd requests.c:report_refusal \
	's/server_complain\(server, COMPLAINT_REQUEST.*?;//s'
mutate key_not_asked_for test_refusals accept_handshake \
	's/ask_for_key\(connection\);//' \
	ask_for_key \
	's/static void\nask_for_key/static inline void\nask_for_key/'
mutate anybody_asked_for_key test_refusals ask_for_key \
	's/ \|\|\s+frame.method != CONTROL_HELLO//'
mutate unwanted_key_not_told test_refusals refuse_protocol \
	's/stream_refuse_hello\(connection->stream\);//'
mutate version_not_told test_refusals refuse_protocol \
	's/connection_reply\(server, connection, frame, FABRIC_PROTOCOL, 0\);//'
mutate version_told_later test_refusals refuse_protocol \
	's/!connection->introduced && frame->method == CONTROL_HELLO/frame->method == CONTROL_HELLO/'
mutate other_version_is_away test_refusals link_call \
	's/method == CONTROL_HELLO && link->other_version/false/'
mutate other_version_is_away_locally test_refusals control_call \
	's/method == CONTROL_HELLO && client->other_version/false/'
mutate node_believed test_refusals frame_get_channel \
	's/if \(!capabilities_keep_contract\(capabilities, endpoint\)\)/if (false \&\& capabilities_keep_contract(capabilities, endpoint))/'
mutate lock_words_of_zero test_refusals capabilities_keep_contract \
	's/capabilities->lock_words == 0 \|\| //'
mutate chain_longer_than_any test_refusals capabilities_keep_contract \
	's/ && capabilities->max_chain <= FABRIC_MAX_CHAIN//'
