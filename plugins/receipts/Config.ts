// Settings of receipts. Secrets are in environment variables, or in the files that their `_FILE` variants name, never
// in the profile; `keys/readSecrets.ts` reads them.
import { Context, Effect, Layer, Schema } from "effect"
import { entry, flag, integer, list, section, text } from "../../kernel/config/Setting.ts"
import { optionalRemoteSigner, remoteSignerIssue, type RemoteSignerValues } from "../../kernel/config/RemoteSigner.ts"
import { Network } from "../../kernel/config/Network.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { readVerifierKey } from "./log/note.ts"
import { Server } from "../../kernel/config/Server.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"

const receipts = section(
  "receipts",
  "Signed receipts of settled payments, and the log of every outcome. Seeds (S…), former ones after commas: " +
    "RECEIPTS_SECRET signs receipts, and is never the sponsor's; RECEIPTS_LOG_SECRET signs checkpoints.",
  {
    host: text({
      default: "",
      doc: "Public host name of receipts and log, with a port other than 443. Empty in development: localhost."
    }),
    signer: optionalRemoteSigner,
    log_signer: optionalRemoteSigner,
    attestation: flag({
      default: false,
      doc:
        "Add the draft extension facilitator-attestation, which does not define Stellar's payer yet, signed by the " +
        "secp256k1 key in RECEIPTS_ATTESTATION_SECRET, 64 hex digits."
    }),
    witnesses: list(
      entry({
        url: text({ default: "", doc: "Prefix of the witness's add-checkpoint (C2SP tlog-witness)." }),
        key: text({ default: "", doc: "The witness's verifier key, NAME+hex+base64." })
      }),
      { default: [], doc: "Witnesses that cosign checkpoints." }
    ),
    copies: list(Schema.String, {
      default: [],
      doc: "Addresses of published copies of the log, as HOST/log is: one with more, or another tree, stops signing."
    }),
    anchor: flag({
      default: false,
      doc: "Put the hash of a checkpoint on the ledger, in the memo of a sponsor's transaction, at most once an hour."
    }),
    checkpoint_seconds: integer(
      { min: 1, max: 43_200, default: 3_600 },
      "Maximum age of the newest checkpoint; an idle log signs a new one. Verifiers refuse one older than a day."
    )
  }
)

export const declared = [receipts]

interface ConfigValues {
  /** Host as written in a URL; undefined: none is configured, so no receipts are made. */
  readonly host: string | undefined
  /** Whether a key may be generated and kept in the state folder. */
  readonly isDevelopment: boolean
  /** Remote signers of receipts and of checkpoints; the seeds are then former keys. */
  readonly signer: RemoteSignerValues | undefined
  readonly logSigner: RemoteSignerValues | undefined
  readonly isAttested: boolean
  readonly witnesses: ReadonlyArray<{ readonly url: string; readonly key: string }>
  /** Addresses of published copies of the log. */
  readonly copies: ReadonlyArray<string>
  readonly isAnchored: boolean
  /** Maximum age of the newest checkpoint. */
  readonly checkpointSeconds: number
}

const isWebAddress = (url: string): boolean => /^https?:\/\//.test(url) && URL.canParse(url)

const hostForm = /^[a-z0-9.-]{1,253}(:[0-9]{1,5})?$/

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/receipts/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const values = yield* settings.section(receipts)
      const { developmentAutoFund } = yield* Network
      const crypto = yield* Crypto
      for (const { key, url } of values.witnesses)
        if (!isWebAddress(url) || readVerifierKey(crypto, key) === undefined)
          return yield* new SettingsRefused({
            path: "receipts.witnesses",
            message: "each has an http(s) url, and a key of the form NAME+hex+base64"
          })
      if (!values.copies.every(isWebAddress))
        return yield* new SettingsRefused({ path: "receipts.copies", message: "each is an http(s) URL" })
      for (const signer of [values.signer, values.log_signer]) {
        const message = signer && remoteSignerIssue(signer)
        if (message !== undefined)
          return yield* new SettingsRefused({ path: "receipts.signer, receipts.log_signer", message })
      }
      const { port } = yield* Server
      if (values.host !== "" && !hostForm.test(values.host))
        return yield* new SettingsRefused({
          path: "receipts.host",
          message: "it must be a host name in lower case, with a port at most, without a scheme or path"
        })
      const local = port === 0 ? "localhost" : `localhost:${port}`
      return Config.of({
        host: values.host !== "" ? values.host : developmentAutoFund ? local : undefined,
        isDevelopment: developmentAutoFund,
        signer: values.signer && { ...values.signer, secret: settings.secret },
        logSigner: values.log_signer && { ...values.log_signer, secret: settings.secret },
        isAttested: values.attestation,
        witnesses: values.witnesses,
        copies: values.copies,
        isAnchored: values.anchor,
        checkpointSeconds: values.checkpoint_seconds
      })
    })
  )
}

/** `did:web:…` of a host; a port's colon is escaped. */
export const didOf = (host: string): string => `did:web:${host.replace(":", "%3A")}`
