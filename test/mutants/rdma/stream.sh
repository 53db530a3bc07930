# Mutants of rdma/stream: its safeguards, removed one at a time (test/README). Sourced.

mutate other_version_is_away test_refusals link_call \
	's/method == CONTROL_HELLO && link->other_version/false/'
mutate key_file_mode_not_checked test_keys open_private \
	's/\(state.st_mode & \(S_IRWXG \| S_IRWXO\)\) != 0/false/'
mutate key_file_owner_not_checked test_keys open_private \
	's/state.st_uid != geteuid\(\) && state.st_uid != 0/false/'
mutate key_of_zeroes test_keys parse_key \
	's/return any != 0;/return any == any;/'
mutate identity_shows_the_key test_keys set_identity \
	's/"%02x", hash\[i\]/"%02x", key->key[i]/'
mutate key_of_two_tenants test_keys conflict_of \
	's/memcmp\(other->key, key->key, sizeof\(key->key\)\) == 0/false/'
mutate sixteen_tenants test_keys conflict_of \
	's/!known && tenants == FABRIC_MAX_TENANTS/false/'
mutate keys_not_overwritten test_keys fabric_keys_forget \
	's/explicit_bzero\(keys, sizeof\(\*keys\)\);/keys->count = 0;/'
mutate silent_peer_stays test_tcp network_tune \
	's/setsockopt\(descriptor, SOL_SOCKET, SO_KEEPALIVE.*?;//'
mutate wait_without_deadline conformance=--tcp network_sleep \
	's/if \(now >= deadline\)\n\t\treturn FABRIC_TIMED_OUT;//'
mutate other_hash_allowed test_handshake CIPHER_SUITES \
	's/"TLS_AES_128_GCM_SHA256:/"TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:/' \
	psk_cipher \
	's/\{0x13, 0x01\}/{0x13, 0x02}/'
mutate kept_in_the_read test_handshake socket_read \
	's/stream->reads_left--;//'
mutate signal_on_plain_end test_stream socket_write \
	's/bytes, MSG_DONTWAIT \| MSG_NOSIGNAL/bytes, MSG_DONTWAIT/'
mutate identity_cut_at_zero test_handshake find_session \
	's/ \|\| memchr\(identity, .\\0., bytes\) != NULL//'
mutate key_stays_with_connection test_stream forget_key \
	's/SSL_SESSION_set1_master_key\(session, zeroes, sizeof\(zeroes\)\);//'
mutate older_tls_allowed test_handshake stream.c:configure \
	's/set_min_proto_version\(tls, TLS1_3_VERSION\)/set_min_proto_version(tls, TLS1_2_VERSION)/'
mutate no_forward_secrecy test_handshake stream.c:configure \
	's/SSL_CTX_clear_options\(tls, /SSL_CTX_set_options(tls, /'
mutate tickets_given test_handshake stream.c:configure \
	's/SSL_CTX_set_num_tickets\(tls, 0\)/SSL_CTX_set_num_tickets(tls, 2)/'
mutate write_tied_to_its_address test_stream stream.c:configure \
	's/ \| SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER//'
mutate errors_of_others_believed test_stream stream.c:prepare \
	's/(\nprepare\(Stream \*stream\)\n\{\n)\tERR_clear_error\(\);/$1/'
mutate errors_left_for_others test_handshake tls_status \
	's/(refuse\(stream, ERR_GET_REASON\(reason\), text\);\n)\tERR_clear_error\(\);/$1/'
mutate hello_heard_in_part test_handshake hear_hello \
	's/return hear_until\(stream, whole\);/return STREAM_OK;/'
mutate hello_of_any_length test_handshake hear_hello \
	's/if \(whole > HELLO_BYTES\)/if (false)/; s/return hear_until\(stream, whole\);/return hear_until(stream, whole < HELLO_BYTES ? whole : HELLO_BYTES);/'
mutate second_hello_awaited test_handshake stream_handshake \
	's/stream->find != NULL && stream->tenant == 0\)/false)/'
mutate certificate_in_place_of_key test_handshake stream_handshake \
	's/SSL_session_reused\(stream->ssl\) != 1/false/' \
	stream_client \
	's/SSL_VERIFY_PEER/SSL_VERIFY_NONE/'
mutate part_of_record_is_pending test_stream stream_read \
	's/stream->drained = result != 1;/stream->drained = false;/'
mutate rest_of_record_forgotten test_stream stream_pending \
	's/!stream->drained && SSL_has_pending\(stream->ssl\) == 1/false/'
mutate tenant_before_the_end test_handshake stream_tenant \
	's/stream->ready \? stream->tenant : 0/stream->tenant/'
