// Removes each check of an exact payment, one at a time: those of its structure, terms and authorization, and those of
// its simulation. The tests of the scheme must fail, even where other checks still refuse the payment.
import type { Mutation } from "./Mutation.ts"
import { checks } from "../../plugins/x402-exact/checks.ts"

const vitest = (...files: ReadonlyArray<string>) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  ...files
]

const checksFile = "plugins/x402-exact/checks.ts"
const simulationFile = "plugins/x402-exact/simulationChecks.ts"
const wireFile = "plugins/x402-exact/ExactWire.ts"
const schemeFile = "plugins/x402-exact/ExactScheme.ts"

const offline = { catcher: vitest("test/plugins/x402-exact/checks.test.ts") }
const simulation = { catcher: vitest("test/plugins/x402-exact/simulationChecks.test.ts") }
const scheme = { catcher: vitest("test/plugins/x402-exact/ExactScheme.test.ts") }

/** One whole check that finds nothing any more. */
const withoutCheck = ({ name }: { readonly name: string }): Mutation => ({
  name: `no check “${name}”`,
  changes: [
    {
      file: checksFile,
      from: `    name: "${name}",\n    find: `,
      to: `    name: "${name}",\n    find: (): CheckError => undefined, was: `
    }
  ],
  ...offline
})

const part = (name: string, from: string, to: string, caught = offline): Mutation => ({
  name,
  changes: [{ file: checksFile, from, to }],
  ...caught
})
const simulated = (name: string, from: string, to: string): Mutation => ({
  name,
  changes: [{ file: simulationFile, from, to }],
  ...simulation
})

const readAlike = (name: string, from: string, to: string): Mutation => ({
  name,
  changes: [{ file: "kernel/payment/readSimulation.ts", from, to }],
  ...simulation
})

export const mutations: ReadonlyArray<Mutation> = [
  ...checks.map(withoutCheck),
  part(
    "the operation's source is not checked",
    "const sources = [payload.source, ...(source == null ? [] : addressesIn(source))]",
    "const sources = [payload.source, ...(source == null ? [] : [])]"
  ),
  part("the transaction's source is not checked", "const sources = [payload.source, ...", "const sources = [..."),
  part(
    "a fourth argument passes",
    'call?.functionName !== "transfer" || call.args.length !== 3',
    'call?.functionName !== "transfer"'
  ),
  part("any function passes", 'call?.functionName !== "transfer" || call.args.length !== 3', "call?.args.length !== 3"),
  part("an amount of zero passes", "required <= 0n || ", ""),
  part("any amount passes", " || transfer.amount !== required", ""),
  part(
    "no amount is too large",
    "return required > paymentMax ?",
    "return required > paymentMax * 0n + 2n ** 200n ?",
    scheme
  ),
  part(
    "only the credential's own address is compared with ours",
    "[...addressesIn(entry)].some(subject.isOurs)",
    'subject.isOurs(credentialAddress(entry) ?? "")'
  ),
  part("further entries pass", "return others.length > 0 ?", "return others.length > 99 ?"),
  part(
    "an empty list of signatures passes",
    "signatures !== undefined && signatures.length > 0 &&",
    "signatures !== undefined &&"
  ),
  part(
    "one right signature is enough",
    "signatures.every(({ key, signature })",
    "signatures.some(({ key, signature })"
  ),
  part(
    "a signature in another form passes",
    "const valid = signatures !== undefined && signatures.length > 0 &&",
    "const valid = signatures === undefined || signatures.length > 0 &&"
  ),
  part("the last moment is good enough", "export const ledgersLeftMin = 2", "export const ledgersLeftMin = 0", scheme),
  simulated(
    "a refusal by the host passes",
    '    case "Refused":\n      return [',
    '    case "Refused":\n      return undefined ?? answer.code === "never" ? undefined : undefined; ['
  ),
  simulated(
    "a wish to restore passes",
    '    case "RestoreRequired":\n      return [',
    '    case "RestoreRequired":\n      return undefined; ['
  ),
  simulated(
    "a restore beyond the ceiling is called a fee",
    'if (restore !== undefined) return ["invalid_ledger_restore_required", restore]',
    ""
  ),
  simulated(
    "an unreadable movement passes",
    'if (events === undefined || events.some(({ _tag }) => _tag === "Unreadable"))',
    "if (events === undefined)"
  ),
  simulated(
    "events that are none pass",
    `    return undefined
  }
}

const movementError`,
    `    return []
  }
}

const movementError`
  ),
  simulated(
    "no transfer passes",
    'if (only === undefined) return ["invalid_exact_ledger_payload_no_transfer_events", "the simulation shows no transfer"]',
    "if (only === undefined) return undefined"
  ),
  simulated(
    "another asset may move too",
    "if (moved.some(({ transfer }) => transfer.contract !== promise.asset))",
    "if (only.transfer.contract !== promise.asset)"
  ),
  simulated("the asset may move on", "if (others.length > 0) return", "if (others.length > 99) return"),
  simulated("the issuer may pay", 'if (only.kind === "mint") return', 'if (only.kind === "clawback") return'),
  simulated(
    "any payer passes",
    "if (only.transfer.from !== promise.payer) return",
    'if (only.transfer.from === "") return'
  ),
  simulated(
    "any recipient passes",
    'only.transfer.to !== promise.payTo : only.kind !== "burn"',
    'false : only.kind !== "burn"'
  ),
  simulated(
    "a clawback is a payment",
    'only.transfer.to !== promise.payTo : only.kind !== "burn"',
    "only.transfer.to !== promise.payTo : false"
  ),
  simulated(
    "any amount may move",
    "return only.transfer.amount === promise.amount ? undefined :",
    "return only.transfer.amount > 0n ? undefined :"
  ),
  {
    name: "an event of a failed call is a movement",
    changes: [
      {
        file: "kernel/stellar/TransferEvents.ts",
        from: "return inSuccessfulContractCall ? [event] : []",
        to: "return [event]"
      }
    ],
    ...simulation
  },
  {
    name: "a diagnostic event is a movement",
    changes: [
      {
        file: "kernel/stellar/TransferEvents.ts",
        from: "event.type === eventKind.contract",
        to: "event.type >= 0"
      }
    ],
    ...simulation
  },
  simulated("an exact payment's fee is not checked", "?? feeError(answer, ceilings)", ""),
  readAlike(
    "no resource fee is too high",
    "if (resourceStroops > ceilings.resourceStroopsMax)",
    "if (resourceStroops < 0n)"
  ),
  readAlike("no total fee is too high", "return least > ceilings.totalStroopsMax", "return least < 0n"),
  readAlike(
    "a spent authorization is not seen",
    'answer._tag === "Refused" && /Auth, ExistingValue/.test(answer.code)',
    "false"
  ),
  {
    name: "a muxed address is as good as a plain one",
    changes: [{ file: wireFile, from: "muxed: isMuxed(from) || isMuxed(to),", to: "muxed: false," }],
    ...offline
  },
  {
    name: "addresses below the surface are not found",
    changes: [
      {
        file: "kernel/stellar/Address.ts",
        from: "if (!(field instanceof Uint8Array)) pending.push(field)",
        to: "if (!(field instanceof Uint8Array)) continue"
      }
    ],
    ...offline
  },
  {
    name: "an expiry too far is checked against an old ledger",
    changes: [
      {
        file: schemeFile,
        from: `if (error?.[0] === "invalid_exact_ledger_signature_expiration_too_far")`,
        to: `if (error?.[0] === "invalid_exact_ledger_payload_malformed")`
      }
    ],
    ...scheme
  },
  {
    name: "the operation keeps the client's source",
    changes: [
      {
        file: schemeFile,
        from: "encodeOperation(withoutSource(call!.operation))",
        to: "encodeOperation(call!.operation)"
      }
    ],
    ...scheme
  },
  {
    name: "an authorization beside further ones is used for this transfer alone",
    changes: [{ file: schemeFile, from: "keys.length === 1 &&", to: "" }],
    ...scheme
  },
  {
    name: "an executed transaction is believed without its event",
    changes: [
      {
        file: schemeFile,
        from: "Option.isNone(transfers) || movedAsPromised(transfers.value, promise)",
        to: "Option.isNone(transfers) || transfers.value.length >= 0"
      }
    ],
    ...scheme
  },
  {
    name: "the payment is decoded for each lookup",
    changes: [
      {
        file: "kernel/cache/objectSlot.ts",
        from: `    known.set(key, now)
`,
        to: ""
      }
    ],
    ...scheme
  },
  {
    name: "what aged in the queue is prepared all the same",
    changes: [
      {
        file: schemeFile,
        from: "return error === undefined ? (state as State)",
        to: "return error !== null ? (state as State)"
      }
    ],
    ...scheme
  },
  {
    name: "two nonces are one authorization",
    changes: [
      {
        file: "kernel/stellar/AuthorizationKey.ts",
        from: "(encodeAddress(address))}:${nonce}:",
        to: "(encodeAddress(address))}:"
      }
    ],
    ...scheme
  }
]
