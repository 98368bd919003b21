// Removes each guard of what a payer is asked to sign: in the client that compares, and in the route.
import type { Mutation } from "./Mutation.ts"

const catcher = [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  "test/plugins/prepare/prepare.daily.test.ts"
]
const batchCatcher = [...catcher.slice(0, -1), "test/plugins/prepare/batch.daily.test.ts"]
const inFile =
  (file: string) =>
  (name: string, from: string, to: string): Mutation => ({ name, changes: [{ file, from, to }], catcher })
const client = inFile("examples/prepared.mjs")
const routes = inFile("plugins/prepare/PrepareRoutes.ts")
const layout = inFile("plugins/x402-exact/ExactScheme.ts")
const wrapper = (name: string, from: string, to: string): Mutation => ({
  name,
  changes: [{ file: "examples/facilitators.mjs", from, to }],
  catcher: [...catcher.slice(0, -1), "test/examples/facilitators.daily.test.ts"]
})
const batch = (name: string, from: string, to: string, file = "examples/preparedBatch.mjs"): Mutation => ({
  name,
  changes: [{ file, from, to }],
  catcher: batchCatcher
})

const curl = (name: string, from: string, to: string): Mutation => ({
  name,
  changes: [{ file: "examples/curl/pay.sh", from, to }],
  catcher: [...catcher.slice(0, -1), "test/examples/curl.daily.test.ts"]
})

const stranger = (name: string, from: string, to: string): Mutation => ({
  name,
  changes: [{ file: "examples/prepared.mjs", from, to }],
  catcher: [...catcher.slice(0, -1), "test/examples/strangers.daily.test.ts"]
})
const buyer = (name: string, from: string, to: string): Mutation => ({
  name,
  changes: [{ file: "examples/buyer.ts", from, to }],
  catcher: [...catcher.slice(0, -1), "test/examples/buyer.daily.test.ts"]
})

export const mutations: ReadonlyArray<Mutation> = [
  client(
    "a client signs whatever it is given",
    "if (!isSame || given.transaction !== envelope(value.void))",
    "if (false)"
  ),
  client("a client signs for any life", "|| ledger > newest + longest)", ")"),
  client(
    "a client knows no other ledger",
    "const newest = asked === undefined ? latestLedger : asked.result?.sequence",
    "const newest = latestLedger"
  ),
  routes("anyone asks without a key", "isPublic\n        ? Option.some", "true\n        ? Option.some"),
  routes("any rate", "return wait > 0", "return wait < 0"),
  layout(
    "what would be refused is laid out",
    "return error === undefined ? laidOut : refusal(error[0], error[1], Option.some(order.payer))",
    "return laidOut"
  ),
  batch(
    "a batch voucher is signed whatever the facilitator says of it",
    " && given.toSign?.beside?.voucher?.hash === beside",
    "",
    "examples/prepared.mjs"
  ),
  batch("a buyer deposits into any contract", "if (!contracts.includes(extra?.batchContract))", "if (false)"),
  batch("a buyer waits for any delay", " || withdrawDelay > withdrawDelayMax)", ")"),
  batch("a buyer deposits any amount", "if (least > depositMax)", "if (false)"),
  curl(
    "a seller's time runs as a command of bash",
    '[[ $maxTimeoutSeconds =~ $whole ]] || refuse "the terms\' time is no number"',
    ""
  ),
  curl("a ledger's number runs as a command of bash", " && $newest =~ $whole ]]", " ]]"),
  curl("terms with two members of a name are read", ' || refuse "the terms have no $name, or two"', " || true"),
  stranger("a facilitator that a seller names gets the key", "|| isNamed ?", "?"),
  stranger(
    "a facilitator that a seller names is asked without TLS",
    "allowsPlain ? /^https?:$/ : /^https:$/",
    "/^https?:$/"
  ),
  stranger(
    "a seller's facilitator says which ledger is the newest",
    "if (rpcUrl === undefined) throw",
    "if (false) throw"
  ),
  stranger(
    "a ledger RPC without a number is replaced by the facilitator's word",
    "asked.result?.sequence\n",
    "(asked.result?.sequence ?? latestLedger)\n"
  ),
  stranger("a signature lives as long as a seller likes", "ledgersOf(terms.maxTimeoutSeconds, options.maxTimeout)", ""),
  buyer("a buyer's limit holds for any asset", "assets.includes(option.asset) &&", "true &&"),
  buyer(
    "a buyer signs in any asset",
    'if (!(options.assets ?? usualAssets(options.network ?? "ledger:testnet")).includes(accepted.asset))',
    "if (false)"
  ),
  wrapper("a settle of a process that died is sent elsewhere", "wasSentBefore || (await", "(await"),
  wrapper(
    "a facilitator without records is believed after a lost answer",
    "const isForgotten = isUnkept &&",
    "const isForgotten = false &&"
  ),
  batch(
    "the voucher just sent proves an earlier total",
    "if (BigInt(max) > sent.before && BigInt(max) <= sent.max) return false",
    ""
  ),
  batch(
    "a seller says that less is deposited",
    "const deposited = larger(channels.get(channelId)?.balance ?? 0n, BigInt(balance))",
    "const deposited = BigInt(balance)"
  ),
  stranger(
    "a buyer without an SDK signs in any asset",
    "if (!assets.includes(terms.asset)) refuse(",
    "if (false) refuse("
  ),
  batch(
    "a seller's total is taken without proof",
    'if (sign(null, voucherHash(BigInt(max)), privateKeyOf(options.secret)).toString("hex") !== signature) return false',
    ""
  )
]
