// Removes each guard of an upto payment, one at a time: in the contract, whose tests build it from the changed source,
// in the offline checks, in the simulation and the executed transaction, in the verification steps, and in what the
// signer authorizes.
import { checks } from "../../plugins/x402-upto/checks.ts"
import type { Mutation } from "./Mutation.ts"

const vitest = (...args: ReadonlyArray<string>) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  ...args
]

const folder = "test/plugins/x402-upto"
/** Not the test that compares the wasm with its source: it would catch anything. */
const contractTests = vitest(`${folder}/contract.test.ts`, "-t", "^(?!the module)")

const inFile =
  (file: string, catcher: ReadonlyArray<string>) =>
  (name: string, from: string, to: string): Mutation => ({ name, changes: [{ file, from, to }], catcher })

const contract = inFile("plugins/x402-upto/contract/settle.as", contractTests)
const offline = inFile("plugins/x402-upto/checks.ts", vitest(`${folder}/checks.daily.test.ts`))
const profiled = (file: string) => inFile(`plugins/x402-upto/${file}`, vitest(`${folder}/profiles.daily.test.ts`))
const verified = inFile("plugins/x402-upto/verifyPayment.ts", vitest(`${folder}/UptoScheme.test.ts`))
const known = inFile("plugins/x402-upto/authorizations.ts", vitest(`${folder}/UptoScheme.test.ts`))
const shown = inFile("plugins/x402-upto/simulationChecks.ts", vitest(`${folder}/simulationChecks.test.ts`))
const readAlike = inFile("kernel/payment/readSimulation.ts", vitest(`${folder}/simulationChecks.test.ts`))
const executed = inFile("plugins/x402-upto/executedChecks.ts", vitest(`${folder}/simulationChecks.test.ts`))
const offered = inFile("plugins/x402-upto/UptoScheme.ts", vitest(`${folder}/UptoScheme.test.ts`))
const signed = inFile("kernel/signer/ownAuthorization.ts", vitest("test/kernel/signer/ownAuthorization.test.ts"))
const audited = inFile("kernel/audit/compare.ts", vitest("test/kernel/audit/compare.test.ts"))

/** One whole check that finds nothing any more. */
const withoutCheck = ({ name }: { readonly name: string }): Mutation =>
  offline(`no check “${name}”`, `name: "${name}", find: `, `name: "${name}", find: (): CheckError => undefined, was: `)

const ofTheContract: ReadonlyArray<Mutation> = [
  contract("the payer signs nothing", "requireAuthForArgs(payer, vec(8))", "vec(8)"),
  contract("the payer does not sign the id", "requireAuthForArgs(payer, vec(8))", "requireAuthForArgs(payer, vec(7))"),
  contract("the facilitator signs nothing", "requireAuth(facilitator)", "currentContract()"),
  contract("the facilitator signs no amount", "requireAuth(facilitator)", "requireAuthForArgs(facilitator, vec(8))"),
  contract("an id is spent again", "demand(hasData(key, TEMPORARY) == 0, ALREADY_SETTLED)", ""),
  contract(
    "an id is not bound to a payer",
    "put(0, payer) put(1, settlementId) const key",
    "put(0, settlementId) put(1, settlementId) const key"
  ),
  contract(
    "the mark of an id ends before the deadline",
    "extendData(key, TEMPORARY, u32Val(ledgersLeft), u32Val(ledgersLeft))",
    ""
  ),
  contract(
    "any amount passes",
    "demand(actualHigh < maxHigh || (actualHigh == maxHigh && actualLow <= maxLow), EXCEEDS_MAXIMUM)",
    ""
  ),
  contract(
    "the upper half of an amount is not compared",
    "actualHigh < maxHigh || (actualHigh == maxHigh && actualLow <= maxLow)",
    "actualLow <= maxLow"
  ),
  contract("a negative amount passes", "demand(actualHigh >= 0, NEGATIVE_AMOUNT)", ""),
  contract("the contract takes a maximum of zero", "(maxHigh == 0 && maxLow > 0)", "maxHigh == 0"),
  contract("a negative maximum passes", "demand(maxHigh > 0 || (maxHigh == 0 && maxLow > 0), INVALID_MAXIMUM)", ""),
  contract("it is never too early", "demand(u32Of(validAfter) <= now, NOT_YET_VALID)", ""),
  contract("it is too early in the first ledger", "u32Of(validAfter) <= now", "u32Of(validAfter) < now"),
  contract("it is never too late", "demand(now <= last, EXPIRED)", ""),
  contract("it is too late in the last ledger", "demand(now <= last, EXPIRED)", "demand(now < last, EXPIRED)"),
  contract("no deadline is too far", "demand(last - now <= LEDGERS_MAX, DEADLINE_TOO_FAR)", ""),
  contract("a payer pays himself", "demandDistinct(payer, payTo)", ""),
  contract("the contract pays", "demandDistinct(payer, contract)", ""),
  contract("the contract is paid", "demandDistinct(payTo, contract)", ""),
  contract("the token is paid", "demandDistinct(payTo, token)", ""),
  contract("the payer's balance is not compared", "demandDifference(payerBefore, balanceOf(token, payer), actual)", ""),
  contract(
    "the recipient's balance is not compared",
    "demandDifference(balanceOf(token, payTo), payToBefore, actual)",
    ""
  ),
  contract("the allowance stays", "approve(token, payer, contract, ZERO, deadline)", ""),
  contract(
    "the maximum is moved",
    "put(3, actual) call(token, symbolFromMemory(",
    "put(3, max) call(token, symbolFromMemory("
  ),
  contract("zero calls the token", "if ((actualHigh | (actualLow as i64)) != 0) pay(", "pay("),
  contract(
    "the event names the maximum as the amount",
    "put(0, actual) put(1, facilitator)",
    "put(0, max) put(1, facilitator)"
  ),
  contract("an id may have any length", "&& bytesLength(settlementId) == u32Val(32)", ""),
  contract(
    "a ledger may be of another type",
    "demand(tagOf(validAfter) == U32_TAG && tagOf(deadline) == U32_TAG, INVALID_ARGUMENT)",
    ""
  ),
  contract("a recipient may be of another type", "isAddress(payTo) &&", "")
]

const ofTheChecks: ReadonlyArray<Mutation> = [
  ...checks.map(withoutCheck),
  offline(
    "an account of ours in a further authorization",
    "call.auth.some((entry) => namesUs(entry, call, isOurs))",
    "namesUs(call.auth[0]!, call, isOurs)"
  ),
  offline("any function passes", "call.functionName === call.profile.functionName && call.values", "call.values"),
  offline(
    "an argument too few passes",
    "call.profile.functionName && call.values.length === call.profile.arguments.length",
    "call.profile.functionName"
  ),
  offline("an id of any length passes", "&& args.settlementId?.length === 32", ""),
  offline("the envelope's amount is not checked", "|| actual !== max) {", ") {"),
  offline("the accepted amount is not compared", "Option.getOrUndefined(accepted.amount) !== max ||", ""),
  offline("a maximum of zero passes", "if (max <= 0n || ", "if ("),
  offline("an asset has no largest payment", "return max > paymentMax ?", "return max < 0n ?"),
  offline("anything may be settled", "if (terms.amount.value > max) {", "if (terms.amount.value > max * 9n) {"),
  offline("a part may be verified", 'return stage === "verify" && terms.amount.value !== max ?', "return max < 0n ?"),
  offline(
    "a negative amount has no word of its own",
    "return /^-[0-9]+$/.test(terms.amountText) ?",
    "return max < 0n ?"
  ),
  offline("a further authorization passes", "return others.length > 0 ?", "return others.length > 9 ?"),
  offline("another function may be authorized", "authorized.functionName === call.profile.functionName &&", ""),
  offline("a third call below passes", "return others.length === (closes ? 1 : 0) && isApproval", "return isApproval"),
  offline("the allowance may be any", "isApproval(opened, call, max, deadline) &&", ""),
  offline("the allowance need not end", "&& (!closes || isApproval(others[0], call, 0n, endLedger))", ""),
  offline("the allowance's amount is not compared", "i128Of(value) === amount &&", ""),
  offline(
    "the sponsor may be in a sub-invocation",
    "const elsewhere = [entry.credentials, entry.rootInvocation.subInvocations, others]",
    "const elsewhere = [entry.credentials, others]"
  ),
  offline("the sponsor may be the credentials", "const elsewhere = [entry.credentials, ", "const elsewhere = ["),
  offline(
    "the deadline may have passed",
    "Math.min(args.deadline ?? 0, credentialsOf",
    "Math.max(args.deadline ?? 0, credentialsOf"
  ),
  offline(
    "the deadline may be too far",
    "const ends = Math.max(args.deadline ?? 0, credentialsOf(entry!)?.signatureExpirationLedger ?? 0)",
    "const ends = credentialsOf(entry!)?.signatureExpirationLedger ?? 0"
  ),
  offline(
    "the signature may be without end",
    "const ends = Math.max(args.deadline ?? 0, credentialsOf(entry!)?.signatureExpirationLedger ?? 0)",
    "const ends = args.deadline ?? 0"
  )
]

/** Guards that the profiles of the drafts have beside ours. */
const ofTheProfiles: ReadonlyArray<Mutation> = [
  profiled("checks.ts")(
    "a draft's contract needs no profile asked for",
    "call.contract === askedFor(subject)?.contract",
    "subject.offered.some(({ contract }) => contract === call.contract)"
  ),
  profiled("verifyPayment.ts")("any code is registered", "if (holds) proven.add(contract)", "return true"),
  profiled("checks.ts")(
    "an allowance that was to end may stay",
    "return others.length === (closes ? 1 : 0) &&",
    "return others.length <= 1 &&"
  ),
  profiled("checks.ts")("seconds never begin", "if (beginsAt === undefined ||", "if (beginsAt !== null ||"),
  profiled("checks.ts")("seconds never end", "lastSecond !== undefined && lastSecond < second", "lastSecond === null"),
  profiled("checks.ts")(
    "a facilitator of the stateful draft may be any",
    'positionIn(profile, "facilitator") < 0 ||',
    'profile.name !== "tollkeeper" ||'
  ),
  profiled("checks.ts")(
    "the payer signs what it likes of a draft",
    "sameBytes(encodeValues(authorized.args), encodeValues(signedValues(call)))",
    "sameBytes(encodeValues(authorized.args), encodeValues(authorized.args))"
  )
]

const ofTheEvents: ReadonlyArray<Mutation> = [
  shown("any sequence passes", "if (names.join() !== expected.join()) {", "if (names.length > 9) {"),
  shown("zero may show an allowance", "...(amount === 0n && !profile.zeroApproves ?", "...(amount === -1n ?"),
  shown(
    "any contract may emit the settlement",
    "(emitterOf(settled) !== settlement.contract || !isSettled",
    "(!isSettled"
  ),
  shown(
    "the statement is not read",
    "emitterOf(settled) !== settlement.contract || !isSettled(settled, settlement)",
    "emitterOf(settled) !== settlement.contract"
  ),
  shown("the ceiling is not compared", "stated.max === max &&", ""),
  shown("the stated amount is not compared", "&& stated.actual === amount", ""),
  shown(
    "the stated payer is not compared",
    "stated?.payer === payer && stated.payTo === payTo",
    "stated?.payTo === payTo"
  ),
  shown("the stated recipient is not compared", "stated.payTo === payTo &&", ""),
  shown("the stated token is not compared", '(!("token" in stated) || stated.token === asset) &&', ""),
  shown(
    "the allowance is not compared",
    "(opened === undefined || isApproval(opened, settlement, settlement.max)) &&",
    ""
  ),
  shown("the allowance's end is not compared", "&& (closed === undefined || isApproval(closed, settlement, 0n))", ""),
  shown(
    "an allowance may be another's",
    "return addressOf(topics[1]) === payer && addressOf(topics[2]) === contract && approved",
    "return addressOf(topics[2]) === contract && approved"
  ),
  shown(
    "an allowance may be for another",
    "addressOf(topics[2]) === contract && approved === amount",
    "approved === amount"
  ),
  shown("another asset may move", "if (transfer.contract !== settlement.asset)", "if (transfer.amount < 0n)"),
  shown("a burn passes", 'return kind === "transfer" &&', "return"),
  shown("another payer passes", "transfer.from === settlement.payer &&", ""),
  shown("another recipient passes", "transfer.to === settlement.payTo &&", ""),
  shown("another amount passes", "&& transfer.amount === settlement.amount", ""),
  shown(
    "an unreadable movement passes",
    'if (read._tag === "Unreadable")',
    'if (read._tag !== "Other" && read._tag !== "Moved" && read.contract === "")'
  ),
  inFile("kernel/stellar/TransferEvents.ts", vitest(`${folder}/simulationChecks.test.ts`))(
    "events of failed calls count",
    "return inSuccessfulContractCall ? [event] : []",
    "return [event]"
  ),
  shown("diagnostic events count", "eventsOfCalls(eventsXdr).filter(isPublished)", "eventsOfCalls(eventsXdr)"),
  readAlike(
    "any resource fee passes",
    "if (resourceStroops > ceilings.resourceStroopsMax)",
    "if (resourceStroops < -1n)"
  ),
  readAlike("any whole fee passes", "return least > ceilings.totalStroopsMax ?", "return least < 0n ?"),
  shown(
    "a restore beyond the ceiling is called a fee",
    "        (restore === undefined\n",
    '        (restore !== ""\n'
  ),
  shown(
    "a restore within the ceiling is refused",
    "(restore === undefined\n",
    "(answer.restoredEntries === undefined\n"
  ),
  shown(
    "the facilitator's own authorization is free",
    "resourceFeeStroops: answer.resourceFeeStroops + addedStroops }",
    "resourceFeeStroops: answer.resourceFeeStroops }"
  ),
  readAlike(
    "nothing is ever spent",
    'answer._tag === "Refused" && /Auth, ExistingValue/',
    'answer._tag === "Refused" && /Auth, NoValue/'
  ),
  executed(
    "an executed transaction may show anything",
    "checkEvents(contractEvents, { ...promised, contract, profile, closes, max }) === undefined",
    "max !== undefined"
  ),
  executed("an executed transaction may show nothing", "max !== undefined && endings", "max === undefined || endings")
]

const ofTheTraverse: ReadonlyArray<Mutation> = [
  verified(
    "the facilitator signs at verify",
    'if (stage === "verify") return encodeOperation',
    'if (stage === ("never" as string)) return encodeOperation'
  ),
  verified("the first simulation decides", "if (!mayBeOurs(first)) return first", "if (first !== null) return first"),
  verified("a node that is behind refuses an honest payment", "begins <= time.sequence + aheadMax", "begins < 0"),
  verified(
    "a node that simulates behind refuses an honest payment",
    "simulated.latestLedger < beginsOf(subject)",
    "simulated.latestLedger < 0"
  ),
  verified(
    "the offline checks decide nothing",
    `if (error !== undefined)
    return {`,
    `if (error === null)
    return {`
  ),
  verified(
    "the accepted amount is simulated",
    "amount: Option.getOrThrow(payment.requirements.amount)",
    "amount: call.args.max!"
  ),
  verified("a spent authorization is not reported", "...refusedAuthorization(simulated, lastLedgerOf(call))", ""),
  known("another amount is the same settlement", "call.args.actual === promise.amount", "true"),
  known("another recipient is the same settlement", "call.args.payTo === promise.payTo &&", ""),
  known("another payer is the same settlement", "call?.args.payer === promise.payer &&", ""),
  known("another token is the same settlement", "call.args.token === promise.asset &&", ""),
  known("another signature with the nonce is the same", "keys.includes(key) &&", ""),
  offered(
    "what has aged in the queue is prepared",
    "return error === undefined ? state :",
    "return error !== null ? state :"
  ),
  offered(
    "a payment is decoded each time",
    `memoizePerObject((payload: Payment["payload"]) =>`,
    `((payload: Payment["payload"]) =>`
  ),
  audited(
    "the auditor asks zero for a transfer",
    'transfers.length !== (settlement.moved === "0" ? 0 : 1)',
    "transfers.length !== 1"
  ),
  audited(
    "the auditor lets a zero hide a transfer",
    'transfers.length !== (settlement.moved === "0" ? 0 : 1)',
    'settlement.moved !== "0" && transfers.length !== 1'
  )
]

const ofTheSigner: ReadonlyArray<Mutation> = [
  signed("the sponsor authorizes any contract", "candidate.contract === contract && candidate", "candidate"),
  signed(
    "the sponsor authorizes any function",
    "candidate.contract === contract && candidate.functionName === symbolText(call.functionName)",
    "candidate.contract === contract"
  ),
  signed(
    "the sponsor may be missing from the call",
    "const sponsor = sponsors.find((one) => isAddress(call.args[rule.position], one))",
    "const sponsor = sponsors[0]"
  ),
  signed(
    "the operation may have a source",
    "if (operation.sourceAccount != null || call === undefined) return",
    "if (call === undefined) return"
  ),
  signed(
    "the sponsor may be elsewhere",
    "return rest.some((bytes) => holdsAny(bytes, ourKeys)) ?",
    "return rest.length < 1 ?"
  ),
  signed("a key at the very end is overlooked", "at + 32 > bytes.length", "at + 32 >= bytes.length"),
  signed("a key is searched at every fourth byte only", "if (at < 0 ||", "if (at < 0 || at % 4 !== 0 ||"),
  signed("others may name the sponsor", "...others.map((entry) => othersBytes(entry, call, position))", ""),
  signed("any settlement may name us", "if (own.length !== 1 || position < 0) return named", ""),
  signed(
    "a settlement may carry two",
    "if (own.length !== 1 || position < 0) return named",
    "if (own.length < 1 || position < 0) return named"
  ),
  signed(
    "an unsigned authorization is the sponsor's",
    "payload !== undefined && verifyEd25519(",
    "payload !== undefined || verifyEd25519("
  ),
  signed("a call below is the sponsor's too", "entry.rootInvocation.subInvocations.length === 0 &&", ""),
  signed("another call is the sponsor's too", "sameBytes(encodeInvoked(authorized), encodeInvoked(call)) &&", "")
]

export const mutations: ReadonlyArray<Mutation> = [
  ...ofTheContract,
  ...ofTheChecks,
  ...ofTheProfiles,
  ...ofTheEvents,
  ...ofTheTraverse,
  ...ofTheSigner
]
