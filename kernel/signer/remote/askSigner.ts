// One HTTPS request to a remote signer: bounded in time and bytes, without redirects; its content is never logged. A
// missing answer or a refusal does not decide about any payment: nothing was signed, and the request may be repeated.
import { Duration, Effect, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { readText } from "../../http/readText.ts"
import { LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import type { RemoteSignerValues } from "../../config/RemoteSigner.ts"
import type { Crypto } from "../../platform/Crypto.ts"

/** Longest wait for one answer: a channel's lease outlasts two. */
const answerWait = Duration.seconds(2)
const answerBytesMax = 65_536

export interface Question {
  readonly method: "GET" | "POST"
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** JSON, sent byte for byte. */
  readonly body?: string
  readonly contentType?: string
}

/** Nothing was signed, and nothing was decided. */
export const noSignature = (message: string): LedgerUnavailable => new LedgerUnavailable({ operation: "sign", message })

/** The answer as the expected JSON. */
export const askSigner = Effect.fnUntraced(function* <A>(
  { body, contentType = "application/json", headers, method, url }: Question,
  answer: Schema.Codec<A, any>
): Effect.fn.Return<A, LedgerUnavailable, HttpClient.HttpClient> {
  const client = yield* HttpClient.HttpClient
  const bare = HttpClientRequest.setHeaders(HttpClientRequest.make(method)(url), headers)
  const request =
    body === undefined ? bare : HttpClientRequest.bodyUint8Array(bare, new TextEncoder().encode(body), contentType)
  const exchange = Effect.gen(function* () {
    const response = yield* client.execute(request).pipe(
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      // A redirect to another address would send it the operator's token.
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" })
    )
    const text = yield* readText(response.stream, answerBytesMax, () => "too long" as const)
    if (response.status !== 200) return yield* noSignature(`the external signer answered with HTTP ${response.status}`)
    const parsed = yield* Effect.try(() => JSON.parse(text) as unknown)
    return yield* Schema.decodeUnknownEffect(answer)(parsed)
  })
  return yield* exchange.pipe(
    Effect.timeoutOrElse({
      duration: answerWait,
      orElse: () =>
        Effect.fail(noSignature(`the external signer did not answer in ${Duration.toMillis(answerWait)} ms`))
    }),
    Effect.mapError((error) =>
      error instanceof LedgerUnavailable
        ? error
        : noSignature("the external signer cannot be reached or sends no answer")
    )
  )
})

/** DER prefix of an ed25519 public key; the 32 bytes of the key follow. */
const spkiPrefix = "302a300506032b6570032100"

export const keyOfSpki = (der: Uint8Array): Uint8Array | undefined => {
  const hex = Array.from(der, (byte) => byte.toString(16).padStart(2, "0")).join("")
  return der.length === 44 && hex.startsWith(spkiPrefix) ? der.slice(12) : undefined
}

type Ask<A> = Effect.Effect<A, LedgerUnavailable, HttpClient.HttpClient>

interface RemoteKey {
  /** 32 bytes. */
  readonly publicKey: Ask<Uint8Array>
  /** 64 bytes over exactly these bytes: the 32 of a hash, or a message of receipts. */
  readonly sign: (bytes: Uint8Array) => Ask<Uint8Array>
}

export type MakeRemoteKey = (values: RemoteSignerValues, crypto: Crypto["Service"]) => RemoteKey
