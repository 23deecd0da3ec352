//! The tables as Diesel sees them, in the types that both databases share. The migrations are the truth; a test compares.

#![allow(missing_docs, reason = "the columns are explained in the migrations")]

diesel::table! {
    tenants (tenant_id) {
        tenant_id -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    clients (tenant_id, client_id) {
        tenant_id -> Text,
        client_id -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    api_keys (key_hash) {
        key_hash -> Text,
        key_id -> Text,
        tenant_id -> Text,
        client_id -> Text,
        scopes -> Text,
        created_at -> Timestamp,
        revoked_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    claims (tenant_id, client_id, command, idempotency_key) {
        tenant_id -> Text,
        client_id -> Text,
        command -> Text,
        idempotency_key -> Text,
        fingerprint -> Text,
        operation_id -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    operations (tenant_id, operation_id) {
        tenant_id -> Text,
        operation_id -> Text,
        client_id -> Text,
        command -> Text,
        idempotency_key -> Text,
        status -> Text,
        error -> Nullable<Text>,
        order_id -> Nullable<Text>,
        resource -> Nullable<Text>,
        reply_status -> Integer,
        reply_content_type -> Text,
        reply_location -> Nullable<Text>,
        reply_body -> Nullable<Text>,
        member_digests -> Nullable<Text>,
        trace_id -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        completed_at -> Nullable<Timestamp>,
        replay_until -> Nullable<Timestamp>,
        remember_until -> Nullable<Timestamp>,
    }
}

diesel::table! {
    orders (tenant_id, order_id) {
        tenant_id -> Text,
        order_id -> Text,
        client_id -> Text,
        operation_id -> Text,
        channel -> Text,
        external_order_id -> Nullable<Text>,
        customer_id -> Nullable<Text>,
        currency -> Text,
        status -> Text,
        reference -> Text,
        erp_reference -> Nullable<Text>,
        paid_amount -> Text,
        document -> Text,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    order_lines (tenant_id, order_id, line_no) {
        tenant_id -> Text,
        order_id -> Text,
        line_no -> Integer,
        kind -> Text,
        sku -> Nullable<Text>,
        qty -> Text,
        document -> Text,
    }
}

diesel::table! {
    outbox (tenant_id, message_id) {
        tenant_id -> Text,
        message_id -> Text,
        operation_id -> Text,
        channel -> Text,
        kind -> Text,
        order_id -> Text,
        position -> BigInt,
        state -> Text,
        payload -> Text,
        created_at -> Timestamp,
        next_attempt_at -> Timestamp,
        attempts -> Integer,
        spent -> Integer,
        spent_since -> Nullable<Timestamp>,
        lease_token -> Nullable<Text>,
        unknown_since -> Nullable<Timestamp>,
        resend_asked -> Integer,
        last_outcome -> Nullable<Text>,
        trace_id -> Text,
    }
}

diesel::table! {
    attempts (tenant_id, message_id, number) {
        tenant_id -> Text,
        message_id -> Text,
        number -> Integer,
        started_at -> Timestamp,
        ended_at -> Nullable<Timestamp>,
        outcome -> Nullable<Text>,
        detail -> Nullable<Text>,
        trace_id -> Text,
    }
}

diesel::table! {
    connections (tenant_id, channel) {
        tenant_id -> Text,
        channel -> Text,
        kind -> Text,
        url -> Nullable<Text>,
        secret_name -> Nullable<Text>,
        options -> Text,
        failures -> Integer,
        paused_until -> Nullable<Timestamp>,
        pause_reason -> Nullable<Text>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    interventions (tenant_id, operation_id) {
        tenant_id -> Text,
        operation_id -> Text,
        target_operation_id -> Text,
        client_id -> Text,
        decision -> Text,
        erp_reference -> Nullable<Text>,
        reason -> Nullable<Text>,
        trace_id -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    stock (tenant_id, sku) {
        tenant_id -> Text,
        sku -> Text,
        on_hand -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    reservations (tenant_id, reservation_id) {
        tenant_id -> Text,
        reservation_id -> Text,
        client_id -> Text,
        operation_id -> Text,
        order_id -> Nullable<Text>,
        expires_at -> Nullable<Timestamp>,
        released_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    reservation_lines (tenant_id, reservation_id, line_no) {
        tenant_id -> Text,
        reservation_id -> Text,
        line_no -> Integer,
        sku -> Text,
        qty -> BigInt,
        held_until -> Nullable<Timestamp>,
    }
}

diesel::table! {
    payments (tenant_id, payment_id) {
        tenant_id -> Text,
        payment_id -> Text,
        order_id -> Text,
        client_id -> Text,
        operation_id -> Text,
        reference -> Nullable<Text>,
        document -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    messages (tenant_id, message_id) {
        tenant_id -> Text,
        message_id -> Text,
        order_id -> Text,
        client_id -> Text,
        operation_id -> Text,
        template -> Text,
        locale -> Text,
        status -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(tenants, clients, api_keys);
diesel::allow_tables_to_appear_in_same_query!(claims, operations);
diesel::allow_tables_to_appear_in_same_query!(orders, order_lines, outbox);
diesel::allow_tables_to_appear_in_same_query!(outbox, attempts);
