// A random market with every kind of entry: after each operation the counts add up, no account is below its reserve,
// and the events suffice to explain every balance.
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, Claimant, type Keypair, Operation, type xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { apply, fund, operationCode, transaction } from "../support.ts"
import { entriesOf, give, issue, native, poolId, sharesOf, test, withBody } from "./classic.ts"
import { balancesOf, errorsOf, follow } from "./ledgerInvariants.ts"

/** A small generator with a seed, so that a failure can be seen again. */
const randomOf = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
const SEED = 20_267
const STEPS = 400

/** Operations that must have happened at least once. */
const EVERYTHING = [
  "changeTrust",
  "claimClaimableBalance",
  "clawbackClaimableBalance",
  "clawback",
  "createClaimableBalance",
  "liquidityPoolDeposit",
  "liquidityPoolWithdraw",
  "manageData",
  "manageSellOffer",
  "pathPaymentStrictReceive",
  "pathPaymentStrictSend",
  "payment",
  "revokeSponsorship",
  "setOptions",
  "setTrustLineFlags"
]

interface Move {
  readonly source: Keypair
  readonly operations: ReadonlyArray<xdr.Operation>
  readonly signers?: ReadonlyArray<Keypair>
}

const world = Effect.gen(function* () {
  const { issuer: mint, asset: gold } = yield* issue("mint", "GOLD", 2 | 8)
  const { issuer: smith, asset: iron } = yield* issue("smith", "IRON")
  const holders = yield* Effect.forEach(["a", "b", "c", "d"], (name) => fund(`holder ${name}`))
  for (const holder of holders) {
    yield* give(mint, holder, gold, "10000")
    yield* give(smith, holder, iron, "10000")
  }
  return { mint, gold, smith, iron, holders, pools: [sharesOf(native, gold), sharesOf(gold, iron)] as const }
})

type World = Effect.Success<typeof world>

describe(`a random market (seed ${SEED})`, () => {
  const random = randomOf(SEED)
  const pick = <A>(list: ReadonlyArray<A>): A => list[random(list.length)]!
  const units = (): string => `${1 + random(400)}.${random(10)}`

  const exchanges = ({ gold, iron, holders }: World): ReadonlyArray<(caller: Keypair) => xdr.Operation> => {
    const pair = (): readonly [Asset, Asset] => {
      const [from, to] = [pick([native, gold, iron]), pick([native, gold, iron])]
      return from.equals(to) ? pair() : [from, to]
    }
    return [
      () => {
        const [selling, buying] = pair()
        return Operation.manageSellOffer({ selling, buying, amount: units(), price: `${1 + random(4)}` })
      },
      () => {
        const [sendAsset, destAsset] = pair()
        const destination = pick(holders).publicKey()
        const path = random(2) === 0 ? [gold] : []
        return Operation.pathPaymentStrictSend({
          sendAsset,
          sendAmount: units(),
          destination,
          destAsset,
          destMin: "0.1",
          path
        })
      },
      () => {
        const [sendAsset, destAsset] = pair()
        const destination = pick(holders).publicKey()
        return Operation.pathPaymentStrictReceive({
          sendAsset,
          sendMax: "5000",
          destination,
          destAsset,
          destAmount: units(),
          path: []
        })
      },
      () =>
        Operation.payment({
          destination: pick(holders).publicKey(),
          asset: pick([native, gold, iron]),
          amount: units()
        })
    ]
  }

  const pooling = ({ pools }: World): ReadonlyArray<(party: Keypair) => xdr.Operation> => [
    () => Operation.changeTrust({ asset: pick(pools), ...(random(4) === 0 ? { limit: "0" } : {}) }),
    () =>
      Operation.liquidityPoolDeposit({
        liquidityPoolId: poolId(pick(pools)).toString("hex"),
        maxAmountA: units(),
        maxAmountB: units(),
        minPrice: "0.0001",
        maxPrice: "10000"
      }),
    () =>
      Operation.liquidityPoolWithdraw({
        liquidityPoolId: poolId(pick(pools)).toString("hex"),
        amount: units(),
        minAmountA: "0",
        minAmountB: "0"
      })
  ]

  const balancing = (
    { gold, iron, holders }: World,
    ids: ReadonlyArray<string>
  ): ReadonlyArray<(holder: Keypair) => xdr.Operation> => [
    () =>
      Operation.createClaimableBalance({
        asset: pick([native, gold, iron]),
        amount: units(),
        claimants: holders.slice(0, 1 + random(4)).map((holder) => new Claimant(holder.publicKey()))
      }),
    () => Operation.claimClaimableBalance({ balanceId: ids.length === 0 ? "0".repeat(72) : pick(ids) })
  ]

  const keeping = ({ gold, holders }: World): ReadonlyArray<(holder: Keypair) => xdr.Operation> => [
    () => Operation.manageData({ name: `word ${random(3)}`, value: random(3) === 0 ? null : "value" }),
    () => Operation.setOptions({ signer: { ed25519PublicKey: pick(holders).publicKey(), weight: random(2) } }),
    () => Operation.revokeDataSponsorship({ account: pick(holders).publicKey(), name: `word ${random(3)}` }),
    () => Operation.revokeTrustlineSponsorship({ account: pick(holders).publicKey(), asset: gold }),
    () =>
      Operation.revokeSignerSponsorship({
        account: pick(holders).publicKey(),
        signer: { ed25519PublicKey: pick(holders).publicKey() }
      })
  ]

  const issuing = ({ mint, gold, holders }: World, ids: ReadonlyArray<string>): xdr.Operation => {
    const trustor = pick(holders).publicKey()
    const flags = (setFlags: number, clearFlags: number) =>
      withBody(Operation.setTrustLineFlags({ trustor, asset: gold, flags: { authorized: true } }), {
        setFlags,
        clearFlags
      })
    return pick([
      () => flags(1, 2),
      () => flags(1, 2),
      () => flags(2, 1),
      () => flags(0, 3),
      () => Operation.clawback({ asset: gold, amount: units(), from: trustor }),
      () => Operation.clawbackClaimableBalance({ balanceId: ids.length === 0 ? "0".repeat(72) : pick(ids) }),
      () => Operation.payment({ destination: trustor, asset: gold, amount: units(), source: mint.publicKey() })
    ])()
  }

  /** A holder's next operation, sometimes while another holder pays the reserves. */
  const moveOf = (all: World, ids: ReadonlyArray<string>): Move => {
    if (random(5) === 0) return { source: all.mint, operations: [issuing(all, ids)] }
    const source = pick(all.holders)
    const kinds = [exchanges(all), pooling(all), balancing(all, ids), keeping(all)]
    const operation = pick(pick(kinds))(source)
    const sponsor = pick(all.holders)
    if (random(3) > 0 || sponsor === source) return { source, operations: [operation] }
    const begin = Operation.beginSponsoringFutureReserves({
      sponsoredId: source.publicKey(),
      source: sponsor.publicKey()
    })
    const operations = [begin, operation, Operation.endSponsoringFutureReserves({})]
    return { source, operations, signers: [source, sponsor] }
  }

  const balanceIds = Effect.map(entriesOf(4), (entries) =>
    entries.map(({ data }) => `00000000${Buffer.from(data.claimableBalance.balanceId.v0).toString("hex")}`)
  )

  test(
    "a random market keeps counts, liabilities and reserves, explained by events",
    Effect.gen(function* () {
      const { ledger } = yield* LocalLedger
      const all = yield* world
      const balances = balancesOf(ledger.store)
      const codes = new Map<string, number>()
      for (let step = 0; step < STEPS; step++) {
        const { source, operations, signers } = moveOf(all, yield* balanceIds)
        const { meta, result } = yield* apply(yield* transaction(source, operations, { signers: signers ?? [source] }))
        if (meta !== undefined) follow(balances, meta)
        const code = operationCode(result, operations.length === 1 ? 0 : 1) ?? "none"
        codes.set(code, (codes.get(code) ?? 0) + 1)
        expect([step, errorsOf(ledger.store, ledger.options.settings)]).toEqual([step, []])
      }
      expect(balances.list).toEqual(balancesOf(ledger.store).list)
      const succeeded = [...codes.keys()].filter((code) => code.endsWith("Success"))
      expect(succeeded.sort()).toEqual(EVERYTHING.map((name) => `${name}Success`))
    })
  )
})
