// Removes the guards of the channel store, one at a time: what a seller's instances or a repeated request could charge
// twice, and what the claimer could claim twice, too late or for another. The store's tests must fail.
import type { Mutation } from "./Mutation.ts"

const catcher = [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  "test/plugins/batch-store/storedChannels.test.ts"
]
const guards = (
  file: string,
  list: ReadonlyArray<readonly [name: string, from: string, to: string]>
): ReadonlyArray<Mutation> => list.map(([name, from, to]) => ({ name, changes: [{ file, from, to }], catcher }))

export const mutations: ReadonlyArray<Mutation> = [
  ...guards("plugins/batch-store/StoredChannels.ts", [
    [
      "a voucher of another base is reserved",
      "where c.charged + ${price}::numeric = excluded.pending_max and",
      "where"
    ],
    ["a reserved channel is reserved again", "(c.pending_payment is null", "(true or c.pending_payment is null"],
    ["an expired reservation lasts", "or c.pending_until <= clock_timestamp())", ")"],
    ["a charged request reserves again", "where not ${wasCharged(place, channelId, payment)}\n", "where true\n"],
    ["a charge without a reservation", "and c.pending_payment = ${payment}\n", "\n"],
    ["a charge above the voucher", "and c.charged + ${amount}::numeric <= c.pending_max and", "and"],
    ["another request's reservation is released", "and pending_payment = ${payment} returning 1", "returning 1"],
    ["a channel with charges not claimed is forgotten", "and charged <= total_claimed and claim is null", ""],
    ["another seller's channel", "sql`c.principal = ${principal} and", "sql`"]
  ]),
  ...guards("plugins/batch-store/Claims.ts", [
    ["a channel in two claims", "and c.claim is null and c.delegated", "and c.delegated"],
    ["a started withdrawal waits for the policy", "and (c.withdraw_requested_at > 0 or", "and (false or"],
    [
      "a failed channel is claimed again immediately",
      "and (c.claim_after is null or c.claim_after <= clock_timestamp())",
      ""
    ],
    ["a claim ends twice", "where id = ${id} and state = 'open' returning 1", "where id = ${id} returning 1"],
    ["what failed together is claimed together", "set claim = null, claim_alone = true,", "set claim = null,"],
    [
      "a claim is halved twice",
      'if ((yield* ended(id, "failed", reason, null)).length === 0) return\n          const claims',
      'yield* ended(id, "failed", reason, null)\n          const claims'
    ],
    [
      "a half has channels of the other",
      "where c.claim = ${id} and c.config = e->'voucher'->'channel'",
      "where c.claim = ${id}"
    ]
  ]),
  {
    name: "a claim that is too large is made one by one",
    changes: [
      {
        file: "plugins/batch-store/claimer.ts",
        from: "if (tooLarge.test(reason) && claimsOf(claim.payload).length > 1)",
        to: "if (false)"
      }
    ],
    catcher: [...catcher.slice(0, -1), "test/plugins/batch-store/claimer.daily.test.ts"],
    environment: { TOLLKEEPER_TEST_DATABASES: "pglite" }
  }
]
