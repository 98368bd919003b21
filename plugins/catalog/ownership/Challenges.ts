// How a recipient binds itself to a key: the key's caller requests a challenge, signs it with the account that is paid,
// and sends the signature back under the same key. A challenge names this facilitator's host, its network, the
// principal, the recipient and its expiry, and is authenticated by its seal, so that nothing is stored for it and a
// signature is worth nothing to another key or facilitator. How accounts and contract accounts sign it:
// `kernel/accounts/AccountSignatures.ts`.
import { Clock, Context, Effect, Layer } from "effect"
import { Base64Url } from "effect/encoding"
import { generatedSecret } from "../../../kernel/database/generatedSecret.ts"
import { AccountSignatures } from "../../../kernel/accounts/AccountSignatures.ts"
import type { Principal } from "../../../kernel/http/Authentication.ts"
import type { LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"

/** How long a challenge may be answered. */
const lifeMillis = 600_000
const textLengthMax = 1_024
const encoder = new TextEncoder()

const hostForm = /^[a-z0-9.:[\]-]{1,255}$/

/** The host and network of a challenge: the request's Host, in lower case, and the ledger's network. */
interface ChallengePlace {
  readonly host: string
  readonly network: string
}

interface Challenge {
  readonly challenge: string
  /** Base64 of the authorization that a contract account signs instead. */
  readonly authorization: string | undefined
  readonly expiresAt: Date
}

export class Challenges extends Context.Service<
  Challenges,
  {
    /** Undefined if the host is not a valid name. */
    readonly make: (
      principal: Principal,
      payTo: string,
      place: ChallengePlace
    ) => Effect.Effect<Challenge | undefined, LedgerUnavailable>
    /** Whether it is authentic, of this host, principal and recipient, not expired, and signed by the recipient. */
    readonly isAnswered: (
      principal: Principal,
      payTo: string,
      place: ChallengePlace,
      challenge: string,
      signature: string
    ) => Effect.Effect<boolean, LedgerUnavailable>
  }
>()("tollkeeper/catalog/Challenges") {
  static readonly layer = Layer.effect(
    Challenges,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const { isSigned, unsigned } = yield* AccountSignatures
      const secret = yield* generatedSecret("challenge", "catalog_secrets")

      const sealOf = (text: string): Uint8Array => crypto.hmacSha256(secret, encoder.encode(`challenge ${text}`))
      const textOf = ({ owner }: Principal, payTo: string, { host, network }: ChallengePlace, end: number): string =>
        [
          `Tollkeeper at ${host}: ${payTo} may be described by ${owner} on ${network},`,
          `until ${new Date(end).toISOString()}`
        ].join(" ")

      const make: Challenges["Service"]["make"] = Effect.fnUntraced(function* (principal, payTo, place) {
        if (!hostForm.test(place.host)) return undefined
        const end = (yield* Clock.currentTimeMillis) + lifeMillis
        const text = textOf(principal, payTo, place, end)
        const challenge = `${text} ${Base64Url.encode(sealOf(text))}`
        return { challenge, authorization: yield* unsigned(payTo, challenge), expiresAt: new Date(end) }
      })

      const isAnswered: Challenges["Service"]["isAnswered"] = Effect.fnUntraced(
        function* (principal, payTo, place, challenge, signature) {
          if (challenge.length > textLengthMax) return false
          const text = challenge.slice(0, challenge.lastIndexOf(" "))
          const seal = challenge.slice(challenge.lastIndexOf(" ") + 1)
          const end = Date.parse(text.slice(text.lastIndexOf(" ") + 1))
          if (!(end > (yield* Clock.currentTimeMillis)) || text !== textOf(principal, payTo, place, end)) return false
          const isOurs = crypto.timingSafeEqual(encoder.encode(seal), encoder.encode(Base64Url.encode(sealOf(text))))
          return isOurs && (yield* isSigned(payTo, challenge, signature))
        }
      )

      return Challenges.of({ make, isAnswered })
    })
  )
}
