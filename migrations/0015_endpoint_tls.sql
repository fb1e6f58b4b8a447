-- An endpoint's own certificate authority and client certificate: what calls to it are made with.

-- `tls` is what is shown of them. The key is encrypted under the master key.
alter table endpoint
  add column tls_ca text,
  add column tls_certificate text,
  add column tls_key bytea,
  add constraint endpoint_tls_shown check ((tls is null) = (tls_ca is null and tls_certificate is null)),
  add constraint endpoint_tls_key check ((tls_certificate is null) = (tls_key is null));
