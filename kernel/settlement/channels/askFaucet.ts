// Asks the faucet of a development network to fund the sponsor. We ignore its answer: the next poll of the ledger shows
// whether the account exists, and we ask again until it does. It never fails, and its timeout bounds the delay of the
// channels.
import { Duration, Effect } from "effect"
import { HttpClient } from "effect/http"

/** Longest wait for an answer; a friendbot answers after one or two ledger closes. */
export const faucetTimeout = Duration.seconds(10)

/** Asks the faucet at `url` (a friendbot's: `?addr=G…`) for a new account. */
export const askFaucet = Effect.fnUntraced(function* (url: string, address: string) {
  const http = yield* HttpClient.HttpClient
  yield* http.get(`${url}?addr=${address}`).pipe(
    Effect.timeout(faucetTimeout),
    Effect.catch((error) => Effect.logWarning("the faucet did not fund the sponsor", error._tag))
  )
})
