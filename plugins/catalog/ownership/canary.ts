// A canary probe: whether any outside host can be reached. An answer of any public host within a minute is enough.
// Otherwise the canary requests one of the settings' canary URLs, at most once a minute: two dead probes are further
// apart, and no outage that began after an answer counts as both. Without an answer, a failed request proves nothing
// about its origin: this machine's network or its resolver may have failed. Local hosts do not need a canary.
import { Effect } from "effect"
import { isPublicAddress } from "../../../kernel/http/addresses.ts"
import { parseAddress } from "../../../kernel/config/addressRange.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import type { FetchRefused } from "../../../kernel/http/safeFetch.ts"
import { isLocalName } from "../../../kernel/http/localNames.ts"

/** How long an answer of any public host counts for all of them. */
const seenMillis = 60_000
const pauseMillis = 60_000

const isOutside = ({ hostname }: URL): boolean => {
  const host = hostname.replace(/^\[|\]$/g, "")
  return parseAddress(host) === undefined ? !isLocalName(host) : isPublicAddress(host)
}

/** A redirect elsewhere and an answer that is too long are answers too. */
const isAnswer = ({ reason }: FetchRefused): boolean => reason === "redirected" || reason === "too_large"

export const makeCanary = (ask: (url: URL) => Effect.Effect<unknown, FetchRefused>, urls: ReadonlyArray<string>) => {
  let seenAt = -Infinity
  let askedAt = -Infinity
  const answered = (url: URL, now: number): void => {
    if (isOutside(url)) seenAt = Math.max(seenAt, now)
  }
  const isOutsideSeen = Effect.fnUntraced(function* (target: URL) {
    if (!isOutside(target)) return true
    const now = yield* monotonicMillis
    if (now - seenAt < seenMillis) return true
    if (now - askedAt < pauseMillis) return false
    askedAt = now
    for (const url of urls) {
      const isReached = yield* Effect.match(ask(new URL(url)), { onSuccess: () => true, onFailure: isAnswer })
      if (!isReached) continue
      seenAt = now
      return true
    }
    return false
  })
  return { answered, isOutsideSeen }
}
