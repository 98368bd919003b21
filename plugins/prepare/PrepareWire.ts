// The body and the answer of `POST /prepare`, as Schemas, and the route's declaration.
import { Schema } from "effect"
import { answers, at, type Documented } from "../../kernel/http/Route.ts"
import { anything, text, time, units, whole } from "../../kernel/http/wireSchema.ts"

const PrepareRequest = Schema.Struct({
  x402Version: Schema.Literal(2),
  paymentRequirements: anything("One option of a seller's `accepts`."),
  payer: text("Account (G…) or contract (C…) that will sign."),
  choices: Schema.optionalKey(
    anything("The payer's choices. Batch deposit: `amount`, `charged`, `payerAuthorizer`, `salt`.")
  )
}).annotate({ identifier: "PrepareRequest" })

export const PrepareAnswer = Schema.Struct({
  x402Version: Schema.Literal(2),
  scheme: text("As in the terms."),
  network: text("As the request spelled it."),
  networkPassphrase: text("The signed bytes start with its sha256."),
  payer: text("As in the request."),
  transaction: text("Base64 XDR of the envelope, the authorization in it unsigned."),
  authorizationEntry: text("Base64 XDR of the payer's authorization, unsigned."),
  nonce: text("Nonce of the authorization, a signed 64-bit integer as decimal text."),
  chosen: anything("Values that the scheme chose, besides nonce and expiry, by name."),
  toSign: Schema.Struct({
    preimage: text("Base64 of the bytes that are hashed."),
    hash: text("sha256 of them, hex: the 32 bytes that an ed25519 key signs."),
    checkAuth: Schema.optionalKey(
      Schema.Struct({
        contract: text("The wallet."),
        signaturePayload: text("First argument of its `__check_auth`, hex."),
        contexts: Schema.Array(
          Schema.Struct({
            contract: text("Contract that is called."),
            functionName: text("Its function."),
            args: Schema.Array(text("Base64 XDR of a value."))
          })
        ).annotate({ description: "Third argument, in order: the calls that are authorized." })
      })
    ).annotate({ description: "For a payer that is a contract." }),
    beside: Schema.optionalKey(
      Schema.Record(
        Schema.String,
        Schema.Struct({
          signer: text("The ed25519 key that signs, as G…."),
          preimage: text("Base64 of the bytes that are hashed."),
          hash: text("sha256 of them, hex: the 32 bytes that the key signs.")
        })
      ).annotate({ description: "Further signatures of the payload, by name: for a batch deposit, its `voucher`." })
    )
  }),
  payload: anything("Value to send as `paymentPayload.payload`, with empty signatures."),
  expires: Schema.Struct({
    ledger: whole("Last ledger of the signature."),
    latestLedger: whole("The newest ledger seen by this facilitator."),
    at: time("When that ledger closes, estimated.")
  }),
  fees: Schema.Struct({
    sponsored: Schema.Literal(true),
    sponsor: text("The account that pays them."),
    resourceStroops: units(
      "Resource fee from a recording simulation, stroops: an upper estimate, without the ceiling."
    ),
    inclusionStroops: units("The network's current inclusion fee, stroops."),
    ceilingStroops: units("Maximum cost of this payment for the sponsor, stroops.")
  })
}).annotate({ identifier: "PrepareAnswer" })

/** The route without its rule for callers. */
export const prepareRoute = {
  ...at("POST", "/prepare", "prepare"),
  summary:
    "Prepares the bytes that a payer signs for a seller's terms. Build the same bytes and compare before signing.",
  cost: { cpuMillis: 20, bytesOut: 16_384, statements: 4, rpcCalls: 6 },
  body: PrepareRequest,
  answers: answers("Envelope, authorization, bytes to sign, expiry and fees.", PrepareAnswer, {
    400: "The body does not contain terms and a payer.",
    401: "A bearer key is required.",
    413: "The body is too large.",
    415: "The body is compressed.",
    422: "Such a payment would be refused; the error is the reason of /verify.",
    429: "Too many requests; see Retry-After.",
    503: "The ledger does not answer."
  })
} satisfies Omit<Documented, "callers">
