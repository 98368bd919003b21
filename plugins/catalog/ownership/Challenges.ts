// How a recipient binds itself to a key: the key's caller requests a challenge, signs it with the account that is paid,
// and sends the signature back under the same key. A challenge names this facilitator's host, its network, the
// principal, the recipient and its expiry, and is authenticated by its seal, so that nothing is stored for it and a
// signature is worth nothing to another key or facilitator. What is signed is the text by SEP-53, which wallets display
// (`kernel/ledger/isSignedText.ts`).
import { Clock, Context, Effect, Layer } from "effect"
import { Base64Url } from "effect/encoding"
import type { Principal } from "../../../kernel/http/Principal.ts"
import { isSignedText } from "../../../kernel/ledger/isSignedText.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { secretOf } from "../store/secretOf.ts"

/** How long a challenge may be answered. */
const lifeMillis = 600_000
const textLengthMax = 1_024
const encoder = new TextEncoder()

const hostForm = /^[a-z0-9.:[\]-]{1,255}$/

/** Where a challenge is made and answered: the request's Host, in lower case, and the ledger's network. */
export interface ChallengePlace {
  readonly host: string
  readonly network: string
}

export interface Challenge {
  readonly challenge: string
  readonly expiresAt: Date
}

export class Challenges extends Context.Service<
  Challenges,
  {
    /** Undefined where the host is not a valid name. */
    readonly make: (principal: Principal, payTo: string, place: ChallengePlace) => Effect.Effect<Challenge | undefined>
    /** Whether it is authentic, of this host, principal and recipient, not expired, and signed by the recipient. */
    readonly isAnswered: (
      principal: Principal,
      payTo: string,
      place: ChallengePlace,
      challenge: string,
      signature: Uint8Array
    ) => Effect.Effect<boolean>
  }
>()("tollkeeper/catalog/Challenges") {
  static readonly layer = Layer.effect(
    Challenges,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const secret = yield* secretOf("challenge")

      const sealOf = (text: string): Uint8Array => crypto.hmacSha256(secret, encoder.encode(`challenge ${text}`))
      const textOf = ({ owner }: Principal, payTo: string, { host, network }: ChallengePlace, end: number): string =>
        [
          `Tollkeeper at ${host}: ${payTo} may be described by ${owner} on ${network},`,
          `until ${new Date(end).toISOString()}`
        ].join(" ")

      const make = (principal: Principal, payTo: string, place: ChallengePlace) =>
        Effect.map(Clock.currentTimeMillis, (now): Challenge | undefined => {
          if (!hostForm.test(place.host)) return undefined
          const text = textOf(principal, payTo, place, now + lifeMillis)
          return { challenge: `${text} ${Base64Url.encode(sealOf(text))}`, expiresAt: new Date(now + lifeMillis) }
        })

      const isAnswered: Challenges["Service"]["isAnswered"] = (principal, payTo, place, challenge, signature) =>
        Effect.map(Clock.currentTimeMillis, (now): boolean => {
          if (challenge.length > textLengthMax) return false
          const text = challenge.slice(0, challenge.lastIndexOf(" "))
          const seal = challenge.slice(challenge.lastIndexOf(" ") + 1)
          const end = Date.parse(text.slice(text.lastIndexOf(" ") + 1))
          if (!(end > now) || text !== textOf(principal, payTo, place, end)) return false
          const isOurs = crypto.timingSafeEqual(encoder.encode(seal), encoder.encode(Base64Url.encode(sealOf(text))))
          return isOurs && isSignedText(crypto, payTo, challenge, signature)
        })

      return Challenges.of({ make, isAnswered })
    })
  )
}
