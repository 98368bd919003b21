// The faucet of a development network, asked to fund the sponsor. What it answers does not matter: the next look at the
// ledger tells whether the account is there, and asks again while it is not. It never fails, and one that does not
// answer holds the channels up for so long and no longer.
import { Duration, Effect } from "effect"
import { HttpClient } from "effect/http"

/** The longest wait for an answer; a friendbot answers when the next ledger or two have closed. */
export const faucetTimeout = Duration.seconds(10)

/** Asks the faucet at `url` (a friendbot's: `?addr=G…`) for a new account. */
export const askFaucet = Effect.fnUntraced(function* (url: string, address: string) {
  const http = yield* HttpClient.HttpClient
  yield* http.get(`${url}?addr=${address}`).pipe(
    Effect.timeout(faucetTimeout),
    Effect.catch((error) => Effect.logWarning("the faucet did not fund the sponsor", error._tag))
  )
})
