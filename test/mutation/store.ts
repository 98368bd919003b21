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
      "where ${charged} + ${price}::numeric = excluded.pending_max and",
      "where"
    ],
    [
      "a record of a backup is behind what was claimed",
      "sql`greatest(c.charged, ${ledger.totalClaimed}::numeric, case",
      "sql`greatest(c.charged, case"
    ],
    ["a voucher below what was claimed opens a record", "and not ${isBelowClaimed}::boolean", ""],
    ["a taken channel of a backup is called stale", "const isBase = known === base ||", "const isBase ="],
    ["a reserved channel is reserved again", "(c.pending_payment is null", "(true or c.pending_payment is null"],
    ["an expired reservation lasts", "or c.pending_until <= clock_timestamp())", ")"],
    ["a charged request reserves again", "where not ${wasCharged(place, channelId, payment)} and", "where"],
    ["a charge without a reservation", "and c.pending_payment = ${payment}\n", "\n"],
    ["a charge above the voucher", "and c.charged + ${amount}::numeric <= c.pending_max and", "and"],
    ["another request's reservation is released", "and pending_payment = ${payment} returning 1", "returning 1"],
    ["a channel with charges not claimed is forgotten", "and charged <= total_claimed and claim is null", ""],
    ["another seller's channel", "sql`c.principal = ${principal} and", "sql`"],
    ["an earlier reading is stored as a new one", "state.onchainSyncedAt === undefined", "true"],
    ["a key that came later claims nothing", "delegated = c.delegated or excluded.delegated,", ""],
    [
      "a request that never ended keeps its channel",
      "(pending_until is null or pending_until < old.at)",
      "pending_payment is null"
    ]
  ]),
  ...guards("plugins/batch-store/Claims.ts", [
    ["a channel in two claims", "and c.claim is null and c.delegated", "and c.delegated"],
    ["a started withdrawal waits for the policy", "and (c.withdraw_requested_at > 0 or", "and (false or"],
    [
      "a failed channel is claimed again immediately",
      "and (c.claim_after is null or c.claim_after <= clock_timestamp())",
      ""
    ],
    ["a claim ends twice", "id = ${id} and state = 'open' and principal", "id = ${id} and principal"],
    ["what failed together is claimed together", "set claim = null, claim_alone = true,", "set claim = null,"],
    [
      "a seller's record of a channel hides another's",
      "(principal, channel_id) > (${after.principal}, ${after.channelId})",
      "channel_id > ${after.channelId}"
    ],
    [
      "one seller's claims are submitted before all others'",
      "order by row_number() over (partition by principal order by id), id limit ${submitsMax}",
      "order by id limit ${submitsMax}"
    ],
    [
      "one seller's channels are recorded before all others'",
      "order by row_number() over (partition by c.principal order by bool_or(c.withdraw_requested_at > 0) desc), bool_or",
      "order by bool_or"
    ],
    [
      "another seller's settle is this one's",
      "and principal = ${principal} and network = ${network} and receiver = ${receiver} and token = ${token} and att",
      "and network = ${network} and receiver = ${receiver} and token = ${token} and att"
    ],
    ["a settle that rests keeps the next", "and attempts = 0 and begun_at <= clock_timestamp())", "and attempts = 0)"],
    [
      "what failed to be settled stays",
      `if (kind === "settle") return yield* settleLater(sql, id)`,
      `if (kind === "settle") return`
    ],
    [
      "a channel that cannot be claimed is tried each minute",
      "claimPauseSeconds(only.isWithdrawing, only.waited)",
      "claimPauseSeconds(only.isWithdrawing, 0)"
    ],
    [
      "a started withdrawal waits for a rest",
      'withdraw_requested_at > 0 as "isWithdrawing"',
      'false as "isWithdrawing"'
    ],
    [
      "a claim is halved twice",
      'if ((yield* ended(claim, "failed", reason, null)).length === 0) return\n          const claims',
      'yield* ended(claim, "failed", reason, null)\n          const claims'
    ],
    [
      "a half has channels of the other",
      "where c.claim = ${id} and c.config = e->'voucher'->'channel'",
      "where c.claim = ${id}"
    ]
  ]),
  {
    name: "a buyer's own identifier is a request's",
    changes: [
      {
        file: "examples/batch/BatchStellarServer.ts",
        from: "const pendingId = randomUUID()",
        to: 'const pendingId = paymentPayload.extensions?.["payment-identifier"]?.info?.id ?? randomUUID()'
      }
    ],
    catcher: [...catcher.slice(0, -1), "test/plugins/batch-store/routes.daily.test.ts"],
    environment: { TOLLKEEPER_TEST_DATABASES: "pglite" }
  },
  ...[
    [
      "a charge that fails is passed over",
      '.catch((): Charged => ({ status: "missing" })) if (charged.status !== "charged") { if',
      'if (charged.status !== "charged") { if'
    ],
    [
      "a deposit is answered without its charge",
      "return void Object.assign(result, { success: false,",
      "return void ({"
    ],
    ["a refund of unknown outcome is none", "channel.pendingRefund == null &&\n", "\n"],
    [
      "a deposit's reservation is a voucher's",
      'type === "voucher" ? reservationMillisMin : settledMillisMin',
      "reservationMillisMin"
    ]
  ].map(([name = "", from = "", to = ""]): Mutation => ({
    name,
    changes: [{ file: "examples/batch/BatchStellarServer.ts", from, to }],
    catcher: [...catcher.slice(0, -1), "test/examples/batchServer.test.ts"]
  })),
  ...[
    [
      "a noted claim takes back a refund",
      "isNew ? withState(current, state, Date.now()) : withClaimed(current, state)",
      "withState(current, state, Date.now())"
    ],
    ["a noted claim goes back", "BigInt(state.totalClaimed) > BigInt(channel.totalClaimed) ?", "true ?"]
  ].map(([name = "", from = "", to = ""]): Mutation => ({
    name,
    changes: [{ file: "examples/batch/channels.ts", from, to }],
    catcher: [...catcher.slice(0, -1), "test/examples/batchServer.test.ts"]
  })),
  ...[
    [
      "BatchStellarServer",
      "a voucher above the record is refused unasked",
      "if (BigInt(implied) > BigInt(base)) return",
      ""
    ],
    [
      "channels",
      "a seller's backup is behind what was claimed",
      "String(largest(charged, claimed)) }",
      "String(charged) }"
    ],
    [
      "BatchStellarClient",
      "a buyer goes back below what was claimed",
      "[BigInt(recovered.charged), BigInt(known?.charged ?? 0)].reduce(larger, BigInt(charged))",
      "charged"
    ],
    ["BatchStellarClient", "a buyer of a backup is stuck below what was claimed", "|below_claimed|", "|"],
    ["BatchStellarClient", "a buyer of a backup is stuck without a proof", "|amount_mismatch)", ")"],
    [
      "BatchStellarClient",
      "a claim of the voucher just sent is paid beside it",
      "BigInt(known.charged) && !this.#mayBeSent(channelId, BigInt(charged))",
      "BigInt(known.charged)"
    ]
  ].map(([file = "", name = "", from = "", to = ""]): Mutation => ({
    name,
    changes: [{ file: `examples/batch/${file}.ts`, from, to }],
    catcher: [...catcher.slice(0, -1), "test/examples/batch.daily.test.ts"]
  })),
  {
    name: "the end of a withdrawal is not noted",
    changes: [
      {
        file: "plugins/batch-store/watchWithdrawals.ts",
        from: "state.withdrawRequestedAt === withdrawRequestedAt &&",
        to: "state.withdrawRequestedAt <= withdrawRequestedAt &&"
      }
    ],
    catcher: [...catcher.slice(0, -1), "test/plugins/batch-store/claimer.daily.test.ts"],
    environment: { TOLLKEEPER_TEST_DATABASES: "pglite" }
  },
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
