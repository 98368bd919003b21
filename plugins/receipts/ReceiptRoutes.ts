// GET /receipts/:hash returns the receipt of a transaction, its outcomes in the log and, with ?proof=1, their proofs.
// It answers the principal that settled the transaction, and payer and payTo with a signed challenge. Any other caller
// gets the same 404 as for an unknown hash. /.well-known/did.json lists the keys with their times.
import { Effect, Option, Result, Schema } from "effect"
import { Base64Url } from "effect/encoding"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { SqlClient } from "effect/sql"
import { AccountChallenges } from "../../kernel/accounts/AccountChallenges.ts"
import { Network } from "../../kernel/config/Network.ts"
import { encodeNetwork } from "../../kernel/Dialect.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { parseJson } from "../../kernel/http/BoundedJson.ts"
import { unlistedHost } from "../../kernel/http/hostValidation.ts"
import { json, temporarilyUnavailable, unauthorized } from "../../kernel/http/httpMiddleware.ts"
import { readBody } from "../../kernel/http/readBody.ts"
import { queryOf, readQuery } from "../../kernel/http/readQuery.ts"
import { makeRendered } from "../../kernel/http/rendered.ts"
import { addRoutes, type Handler, route } from "../../kernel/http/Route.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Config, didOf } from "./Config.ts"
import type { Attestation, ReceiptAnswer } from "./contract.ts"
import * as routes from "./description.ts"
import { ChallengeAnswered, ChallengeAsked } from "./ReceiptWire.ts"
import { type KeyOfHistory, ReceiptKeys } from "./keys/ReceiptKeys.ts"
import { Anchors } from "./log/Anchors.ts"
import { Checkpoints } from "./log/Checkpoints.ts"
import { Receipts } from "./Receipts.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const bodyBytesMax = 8_192
/** Maximum outcomes returned for one transaction; there are rarely two. */
const outcomesMax = 20

const unknown = json(
  { error: "not_found", message: "no receipt of such a transaction is yours to read" },
  { status: 404 }
)
const invalid = (message: string) => json({ error: "invalid_request", message }, { status: 400 })
const forbidden = (message: string) => json({ error: "forbidden", message }, { status: 403 })

interface LeafRow {
  readonly epoch: number
  readonly index: bigint
  readonly entry: Uint8Array
  readonly salt: Uint8Array
  readonly record: string
  readonly principal: string | null
  readonly payer: string | null
  readonly pay_to: string | null
}

type Reader = { readonly principal: string } | { readonly account: string }

const mayRead = ({ pay_to, payer, principal }: LeafRow, reader: Reader): boolean =>
  "principal" in reader ? principal === reader.principal : payer === reader.account || pay_to === reader.account

/** The `kid` in a receipt's header. */
const kidOf = (jws: string): string =>
  JSON.parse(Result.getOrThrow(Base64Url.decodeString(jws.slice(0, jws.indexOf("."))))).kid

/** The channels that a receipt's claim lists. */
const channelsOf = (jws: string): ReadonlyArray<string> =>
  Object.keys(JSON.parse(Result.getOrThrow(Base64Url.decodeString(jws.split(".")[1]!))).totals ?? {})

const makeReading = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const checkpoints = yield* Checkpoints
  const receipts = yield* Receipts
  const network = encodeNetwork((yield* Network).id, "stellar")

  /** Whether an account has opened one of these channels. */
  const hasOpened = (channels: ReadonlyArray<string>, { account }: { readonly account: string }) =>
    channels.length === 0
      ? Effect.succeed(false)
      : Effect.map(
          sql`select 1 from receipts_channels where payer = ${account} and channel in (select decode(value, 'hex')
            from jsonb_array_elements_text(${JSON.stringify(channels)}::jsonb) as g (value)) limit 1`,
          ({ length }) => length > 0
        )

  return Effect.fnUntraced(function* (transaction: string, withProof: boolean, reader: Reader) {
    const rows = yield* sql<LeafRow>`select epoch, index, entry, salt, record, principal, payer, pay_to
      from receipts_leaves where transaction = decode(${transaction}, 'hex')
      order by epoch, index limit ${outcomesMax}`
    if (rows.length === 0) return unknown
    const receipt = Option.getOrUndefined(yield* receipts.stored({ network, transaction }))
    const isBuyer = receipt !== undefined && "account" in reader && (yield* hasOpened(channelsOf(receipt.jws), reader))
    const own = rows.filter((row) => isBuyer || mayRead(row, reader))
    if (own.length === 0) return unknown
    const kid = receipt && kidOf(receipt.jws)
    const outcomes = yield* Effect.forEach(own, ({ entry, epoch, index, record, salt }) =>
      Effect.map(
        withProof ? checkpoints.proofOf({ epoch, index: Number(index), entry, record }, kid) : Effect.succeedNone,
        (proof): ReceiptAnswer["outcomes"][number] => ({
          record,
          salt: Base64Url.encode(salt),
          ...(withProof ? { proof: Option.getOrNull(proof) } : {})
        })
      )
    )
    return json({
      network,
      transaction,
      receipt: receipt?.jws ?? null,
      attestation: receipt?.attestation === undefined ? null : (JSON.parse(receipt.attestation) as Attestation),
      outcomes
    } satisfies ReceiptAnswer)
  })
})

const hashForm = /^[0-9a-f]{64}$/

const askedOf = (request: Request) =>
  Effect.map(HttpRouter.params, ({ hash = "" }) => ({
    transaction: hashForm.test(hash.toLowerCase()) ? hash.toLowerCase() : undefined,
    withProof: readQuery(routes.receipt.query, queryOf(request)).given("proof") === "1"
  }))

const answered = <E, R>(answer: Effect.Effect<Response, E, R>): Effect.Effect<Response, never, R> =>
  Effect.catch(answer, (error) =>
    Effect.as(Effect.logWarning("a receipt could not be read", error), temporarilyUnavailable)
  )

export const addReceiptRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const challenges = yield* AccountChallenges
  const read = yield* makeReading

  const decoded = <A>(request: Request, schema: Schema.Codec<A, unknown>) =>
    Effect.map(
      Effect.option(Effect.flatMap(readBody(request, bodyBytesMax), parseJson)),
      Option.flatMap(Schema.decodeUnknownOption(schema))
    )

  const byPrincipal = Effect.fnUntraced(function* (request: Request) {
    const caller = callers.authenticate(request)
    if (Option.isNone(caller)) return unauthorized
    const { transaction, withProof } = yield* askedOf(request)
    if (transaction === undefined) return invalid("a transaction is 64 hex digits")
    // All keyless callers share one principal: each of them could read the payments of all.
    if (!caller.value.keyed && !callers.isLocal(request)) return unknown
    return yield* read(transaction, withProof, { principal: caller.value.owner })
  })

  const challenge = Effect.fnUntraced(function* (request: Request) {
    const asked = yield* decoded(request, ChallengeAsked)
    if (Option.isNone(asked)) return invalid("account: the account (G… or C…) of payer or payTo")
    const host = callers.challengeHost(request)
    if (host === undefined) return forbidden(unlistedHost)
    const made = yield* challenges.make("receipts", host, asked.value.account)
    return typeof made === "string"
      ? invalid(made)
      : json({
          challenge: made.challenge,
          ...(made.authorization === undefined ? {} : { authorization: made.authorization }),
          expiresAt: made.expiresAt.toISOString()
        })
  })

  const byAccount = Effect.fnUntraced(function* (request: Request) {
    const { transaction, withProof } = yield* askedOf(request)
    if (transaction === undefined) return invalid("a transaction is 64 hex digits")
    const asked = yield* decoded(request, ChallengeAnswered)
    if (Option.isNone(asked)) return invalid("account, challenge and signature: strings")
    const host = callers.challengeHost(request)
    if (host === undefined) return forbidden(unlistedHost)
    const error = yield* challenges.errorOf({ ...asked.value, purpose: "receipts", host })
    return error === undefined
      ? yield* read(transaction, withProof, { account: asked.value.account })
      : forbidden(error)
  })

  yield* addRoutes(routes.group, [
    route(routes.challenge, (request) => answered(challenge(request))),
    route(routes.receipt, (request) => answered(byPrincipal(request))),
    route(routes.account, (request) => answered(byAccount(request)))
  ])
})

const jwkOf = ({ kid, publicKey, use }: KeyOfHistory) =>
  use === "attestation"
    ? {
        kty: "EC",
        crv: "secp256k1",
        x: Base64Url.encode(publicKey.slice(1, 33)),
        y: Base64Url.encode(publicKey.slice(33)),
        kid
      }
    : { kty: "OKP", crv: "Ed25519", x: Base64Url.encode(publicKey), kid, alg: "EdDSA" }

/** Each key once, from its first time to its last. */
const spans = (history: ReadonlyArray<KeyOfHistory>): ReadonlyArray<KeyOfHistory> => {
  const byKid = Map.groupBy(history, ({ kid }) => kid)
  return [...byKid.values()].map((times) => ({ ...times.at(-1)!, validFrom: times[0]!.validFrom }))
}

/**
 * The DID document of a host: every key that ever signed, with its times in seconds, and the time from which each
 * checkpoint has the root of the payment map.
 */
const didDocument = (
  host: string,
  all: ReadonlyArray<KeyOfHistory>,
  mapSince?: number,
  anchor?: ReturnType<Anchors["Service"]["newest"]>
) => {
  const [did, history] = [didOf(host), spans(all)]
  return {
    "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
    id: did,
    verificationMethod: history.map((key) => ({
      id: `${did}#${key.kid}`,
      type: "JsonWebKey2020",
      controller: did,
      publicKeyJwk: jwkOf(key),
      validFrom: Math.floor(key.validFrom / 1_000),
      ...(key.validUntil === undefined ? {} : { validUntil: Math.floor(key.validUntil / 1_000) })
    })),
    assertionMethod: history.filter(({ use }) => use !== "log").map(({ kid }) => `${did}#${kid}`),
    service: [
      {
        id: `${did}#log`,
        type: "TransparencyLog",
        serviceEndpoint: `https://${host}/log`,
        ...(mapSince === undefined ? {} : { mapSince }),
        ...(anchor === undefined ? {} : { anchor })
      }
    ]
  }
}

export const addDidRoute = Effect.gen(function* () {
  const { history } = yield* ReceiptKeys
  const { mapSince } = yield* Checkpoints
  const { newest } = yield* Anchors
  const host = (yield* Config).host ?? ""
  // `max-age` is shorter than the time between a key's announcement and its first signature.
  const rendered = makeRendered(yield* Crypto, {
    contentType: "application/json",
    headers: { "access-control-allow-origin": "*", "cache-control": "public, max-age=20" }
  })
  const answer: Handler = (request) =>
    Effect.sync(() => rendered(request, JSON.stringify(didDocument(host, history(), mapSince(), newest()))))
  yield* addRoutes(routes.group, [route(routes.did, answer)])
})
