// Settings of a key on another machine: an HTTPS signer with our own protocol, Vault's transit engine, AWS KMS or
// Google Cloud KMS. They hold names of variables, never their content; variables and files are read on each use, so a
// token renewed in its file needs no restart.
import { type Option, type Redacted, Schema } from "effect"
import { choice, entry, integer, optionalText, text } from "./Setting.ts"

/** Type of `networks.<id>.sponsor_signer`, and of each entry of `.channel_signers`. */
export const remoteSigner = entry({
  kind: choice(["https", "vault-transit", "aws-kms", "gcp-kms"], {
    default: "https",
    doc: "Key holder: an HTTPS signer, Vault's transit engine, AWS KMS or Google Cloud KMS. The key is ed25519."
  }),
  url: text({
    default: "",
    doc: "Signer URL: https, or http on this machine. Empty: the cloud provider's own address."
  }),
  key: text({
    default: "",
    doc: "The key: its name (Vault), id or ARN (AWS), cryptoKeyVersions resource (GCP); unused by an HTTPS signer."
  }),
  key_version: integer({ default: 0, min: 0, max: 1_000_000 }, "Vault: version of the key; 0 means the newest."),
  mount: text({ default: "transit", doc: "Vault: mount path of the engine." }),
  namespace: text({ default: "", doc: "Vault: the namespace." }),
  region: text({ default: "", doc: "AWS: the region." }),
  address: optionalText({
    doc: "The account's address G…; if set, the start does not contact the signer, and works while it is unavailable."
  }),
  token_env: text({ default: "SIGNER_TOKEN", doc: "HTTPS signer and Vault: environment variable with the token." }),
  access_key_env: text({ default: "AWS_ACCESS_KEY_ID", doc: "AWS: environment variable with the access key's id." }),
  secret_key_env: text({ default: "AWS_SECRET_ACCESS_KEY", doc: "AWS: environment variable with the access key." }),
  session_token_env: text({ default: "AWS_SESSION_TOKEN", doc: "AWS: environment variable with a session's token." }),
  credentials_env: text({
    default: "GOOGLE_CREDENTIALS",
    doc: "GCP: environment variable with the service account's key as JSON."
  })
})

export type RemoteSignerSettings = typeof remoteSigner.Type

/** Settings with the secrets that they name. */
export interface RemoteSignerValues extends RemoteSignerSettings {
  readonly secret: (variable: string) => Option.Option<Redacted.Redacted>
}

const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

export const remoteSignerIssue = ({ key, kind, region, url }: RemoteSignerSettings): string | undefined => {
  const given = url === "" ? undefined : URL.canParse(url) ? new URL(url) : null
  if (given === null || (given === undefined && (kind === "https" || kind === "vault-transit")))
    return "url must be the https address of the signer"
  if (given !== undefined && given.protocol !== "https:" && !(given.protocol === "http:" && isLoopback(given.hostname)))
    return "url must be https; plain http is only for this machine"
  if (key === "" && kind !== "https") return `key must name the key that ${kind} holds`
  if (kind === "aws-kms" && !/^[a-z0-9-]+$/.test(region)) return "region must name the region of the key"
  if (kind === "gcp-kms" && !/^projects\/[^/?#]+(\/[A-Za-z]+\/[^/?#]+)*\/cryptoKeyVersions\/[0-9]+$/.test(key))
    return "key must be projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/N"
  return undefined
}

/** An optional group of these settings. */
export const optionalRemoteSigner = Schema.optionalKey(remoteSigner) as never as Schema.Codec<
  RemoteSignerSettings | undefined,
  any
>
