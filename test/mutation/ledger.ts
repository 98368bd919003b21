// Removes rules of the network that the local ledger enforces, one at a time: authorization, once; conditions for a
// transaction to enter the queue and a ledger; which balance may move. If the local ledger allowed a transfer that the
// network refuses, tests against it would prove nothing.
import type { Mutation } from "./Mutation.ts"

const folder = "plugins/ledger-local"

/** Rules of one file, each caught by the tests named. */
const rules = (
  file: string,
  tests: ReadonlyArray<string>,
  list: ReadonlyArray<readonly [name: string, from: string, to: string]>
): ReadonlyArray<Mutation> =>
  list.map(([name, from, to]) => ({
    name,
    changes: [{ file: `${folder}/${file}`, from, to }],
    catcher: [
      ..."node_modules/vitest/vitest.mjs run --config test/vitest.config.ts".split(" "),
      ...tests.map((test) => `test/${folder}/${test}`)
    ]
  }))

export const mutations: ReadonlyArray<Mutation> = [
  ...rules(
    "httpApi.ts",
    ["rpc/limits.test.ts"],
    [["a notification is answered", "(isNotification(request) ? [] : [answer])", "[answer]"]]
  ),
  ...rules(
    "node/privateFolder.ts",
    ["node/privateFolder.test.ts"],
    [["a folder that is there keeps its rights", "yield* files.chmod(folder, folderMode)", ""]]
  ),
  ...rules(
    "rpc/answerRequest.ts",
    ["node/simulationTurns.test.ts"],
    [["simulations do not wait for each other", "method === SLOW_METHOD ? machine.inTurn(called) : called", "called"]]
  ),
  ...rules(
    "node/LedgerMachine.ts",
    ["node/simulationTurns.test.ts"],
    [["simulations run before a ledger that is due", "computing.withPermits(1)", "(effect) => effect"]]
  ),
  ...rules(
    "engine/host/executables.ts",
    ["engine/wasm/protocol28.test.ts"],
    [
      [
        "a contract may refer to unknown code",
        "if (host.storage.get(externalRefKey(reference)) !== undefined) return",
        "return"
      ],
      ["a reference may be in an entry that expires", "if (!isPersistent)", "if (false)"],
      [
        "a reference may name code that is not there",
        'host.storage.require(contractCodeKey(value.bytes), "Wasm does not exist")',
        ""
      ],
      ["a reference may be removed", "if (key.type === ScType.executableTag)\n    throw", "if (false)\n    throw"]
    ]
  ),
  ...rules(
    "engine/host/createContract.ts",
    ["engine/wasm/protocol28.test.ts"],
    [["references are there before their protocol", "protocolVersion < EXTERNAL_REFS_SINCE", "protocolVersion < 0"]]
  ),
  ...rules(
    "engine/wasm/sizeCosts.ts",
    ["engine/wasm/sizeCosts.test.ts"],
    [
      ["a handle that a contract is given has no price", "if (isObjectWord(word)) meter.spend(sizes.handle)", ""],
      ["bytes cost the same at any length", '"b.3": readIn,', ""],
      ["appended bytes cost the same at any length", '"b.e": remadeBytes,', ""],
      ["a rebuilt vector costs the same at any length", '"v.6": remadeList,', ""],
      ["decoding has no price", "call.sizes.decoded(lengthOf(argument(call, 0))) +", ""]
    ]
  ),
  ...rules(
    "engine/xdr/ScVal.ts",
    ["engine/wasm/deepValues.test.ts"],
    [["a value may be nested without end", "if (isTooDeep(value)) throw tooDeep()", ""]]
  ),
  ...rules(
    "engine/wasm/collectionFunctions.ts",
    ["engine/wasm/deepValues.test.ts"],
    [["deep bytes are reported as no value", "isDepthError(error) ? tooDeep() :", ""]]
  ),
  ...rules(
    "runScript.ts",
    ["runScript.test.ts"],
    [
      [
        "what a script's account could not be given is passed over",
        "if (funded === undefined) return",
        "if (false) return"
      ]
    ]
  ),
  ...rules(
    "standalone.ts",
    ["fork.daily.test.ts"],
    [["missing initial accounts are reported as present", "if (funded === undefined) yield*", "if (false) yield*"]]
  ),
  ...rules(
    "node/fork/fetchEntries.ts",
    ["fork.daily.test.ts"],
    [
      [
        "a node that lags a little ends the start of a fork",
        "latest < at.sequence && latest >= at.sequence - BEHIND_MAX",
        "latest < 0 && at.sequence < BEHIND_MAX"
      ]
    ]
  ),
  ...rules(
    "node/fork/Upstream.ts",
    ["node/fork/Upstream.test.ts"],
    [
      ["a fork gives up where it asked too often", "if (busyStatuses.has(status)) return true", ""],
      ["a fork gives up at a rate limit by number", "busyCodes.has(error.code) ||", ""],
      ["a fork gives up at a rate limit in words", "|| busyWords.test(error.message)", ""],
      ["a fork asks for longer than it has", "if (pause === undefined || left <= 0)", "if (pause === undefined)"]
    ]
  ),
  ...rules(
    "node/Ledger.ts",
    ["fork.daily.test.ts"],
    [
      [
        "what a fork cannot fetch while it runs is banned",
        "if (!isMissing) for (const frame of out)",
        "for (const frame of out)"
      ]
    ]
  ),
  ...rules(
    "node/Ledger.ts",
    ["control.test.ts"],
    [
      [
        "what waited is there again after going back",
        "    this.#queue = new Queue()\n    this.#heldUntil",
        "    this.#heldUntil"
      ],
      ["close times run ahead of the clock for ever", "Number(next - now) <= this.options.aheadSecondsMax", "true"],
      ["ledgers share their second", "Number(next - now) <= this.options.aheadSecondsMax", "false"]
    ]
  ),
  ...rules(
    "node/LedgerMachine.ts",
    ["control.test.ts"],
    [
      [
        "going back is not written down",
        "          if (journal !== undefined) yield* journal.begin(snapshot.image)\n",
        ""
      ]
    ]
  ),
  ...rules(
    "engine/xdr/reusedWriter.ts",
    ["engine/xdr/reusedWriter.test.ts"],
    [
      ["what a failed encoding left is written out", "    this.offset = 0\n    this.#depth = 0", "    this.#depth = 0"],
      ["padding is what the last value left", "    this.#buffer.fill(0, at, at + padding)\n", ""]
    ]
  ),
  ...rules(
    "engine/wasm/opcodes.ts",
    ["engine/wasm/Hostile.daily.test.ts"],
    [
      [
        "an instruction that is not on the list is passed over",
        "throw new Malformed(`instruction 0x${op.toString(16)} is not allowed`)",
        "return 0"
      ]
    ]
  ),
  ...rules(
    "engine/wasm/compileWeight.ts",
    ["engine/wasm/Hostile.daily.test.ts"],
    [
      [
        "values on the stack weigh nothing",
        "    if (isJoin(op)) weight += locals + height\n",
        "    if (isJoin(op)) weight += locals\n"
      ],
      [
        "the ways of a table of branches weigh nothing",
        "    if (op === Op.brTable) weight += (operand + 1) * (locals + height)\n",
        ""
      ]
    ]
  ),
  ...rules(
    "engine/wasm/hostImports.ts",
    ["engine/wasm/Hostile.daily.test.ts"],
    [
      [
        "a host function is imported with other parameters",
        "if (!fits || results.length !== 1 || !results.every(isWord))",
        "if (!fits && results.length > 9)"
      ]
    ]
  ),
  ...rules(
    "engine/wasm/curvePoints.ts",
    ["engine/wasm/CurveFunctions.test.ts"],
    [
      [
        "a point outside of the subgroup is multiplied",
        "  if (!isInSubgroup(vm, curve, point)) throw",
        "  if (!isInSubgroup(vm, curve, point) && curve.copies.length > 9) throw"
      ],
      [
        "a point off the curve is added",
        "  if (!isOnCurve(vm, curve, at)) throw invalid(`${curve.group.name}: point not on curve`)\n",
        "  isOnCurve(vm, curve, at)\n"
      ]
    ]
  ),
  ...rules(
    "engine/wasm/curveFunctions.ts",
    ["engine/wasm/CurveFunctions.test.ts"],
    [
      [
        "pairings are computed before they are paid",
        '    vm.charge(cost, count)\n    vm.charge("memCmp", targetBytes)\n',
        '    vm.charge("memCmp", targetBytes)\n'
      ]
    ]
  ),
  ...rules(
    "engine/host/EntryMaps.ts",
    ["engine/host/EntryMaps.test.ts"],
    [
      [
        "a map is not made anew when an entry is written",
        " + replaced + this.#remade(ENTRY_BYTES, count, this.#adjacent)",
        " + replaced"
      ]
    ]
  ),
  ...rules(
    "engine/wasm/WasmRuntime.ts",
    ["engine/wasm/Hostile.daily.test.ts"],
    [["linear memory costs nothing", "    chargeMemory(host, compiled.prepared.memoryBytes)\n", ""]]
  ),
  ...rules(
    "engine/wasm/WasmRuntime.ts",
    ["engine/wasm/diagnostics.test.ts"],
    [["a host function's error is not escalated", "    vm.host.logError(error.saying(words))\n", ""]]
  ),
  ...rules(
    "engine/curves/PointGroup.ts",
    ["engine/wasm/CurveFunctions.test.ts"],
    [
      ["a coordinate beyond the field is taken", "    if (value >= prime) throw", "    if (value < 0n) throw"],
      [
        "a flag is passed over",
        "    if (flagged !== 0 && flagged !== flags.infinity) throw",
        "    if (flagged < 0) throw"
      ]
    ]
  ),
  ...rules(
    "transaction/applyTransaction.ts",
    ["node/hostileContracts.test.ts"],
    [
      [
        "a defect of one transaction stops the ledger",
        "    failWith(applying, TxCode.internalError)\n",
        "    if (applying.place >= 0) throw error\n"
      ]
    ]
  ),
  ...rules(
    "engine/host/InstructionMeter.ts",
    ["engine/host/InstructionMeter.test.ts"],
    [
      [
        "a call uses more than it declared",
        'if (this.#instructions > this.#instructionsMax) throw exceeded("instruction")',
        ""
      ]
    ]
  ),
  ...rules(
    "node/journalText.ts",
    ["node/journal.daily.test.ts"],
    [
      [
        "a damaged line of the journal is believed",
        "if (end !== undefined && checkOf(crypto, json) !== check) return undefined",
        ""
      ]
    ]
  ),
  ...rules(
    "engine/host/Random.ts",
    ["transaction/random.test.ts"],
    [["a seed is used as it was chosen", "new Random(crypto.hmacSha256(EXTRACTOR_KEY, seed))", "new Random(seed)"]]
  ),
  ...rules(
    "engine/auth/Auth.ts",
    ["engine/auth/Auth.test.ts", "engine/auth/Delegates.test.ts", "engine/rules.test.ts"],
    [
      ["a nonce is used twice", "if (storage.get(key) !== undefined) {", "if (storage === undefined) {"],
      ["an authorization never ends", "if (ledgerSeq > expiration) {", "if (ledgerSeq < 0) {"],
      ["an authorization of any length", "if (expiration > latest) {", "if (expiration < 0) {"],
      ["no signature is checked", "if (!tracker.verified) this.#verify(tracker)", ""],
      ["any address's entry passes", "tracker.addressId !== addressId ||", ""],
      ["any call will do", "!tracker.tree.match(id, !hasActive)", "!(tracker.tree.match(id, !hasActive) || true)"],
      ["any contract calls for its caller's caller", "if (invoker === undefined) return false", "return true"],
      ["what failed has still authorized", "tracker.verified = verified\n", ""],
      ["a delegate serves twice", "!candidate.used &&", ""]
    ]
  ),
  ...rules(
    "engine/auth/AccountAuth.ts",
    ["engine/auth/Auth.test.ts"],
    [
      [
        "any signature verifies",
        "if (!host.verify(publicKey, payload, signatureBytes)) {",
        "if (payload === signatureBytes) {"
      ],
      ["any key signs for an account", "if (signerWeight === 0) {", "if (signerWeight < 0) {"],
      ["one key counts twice", "compareBytes(previous, publicKey) >= 0", "compareBytes(previous, publicKey) > 99"],
      ["any weight is enough", "if (weight < threshold) {", "if (weight < 0) {"],
      ["no signature", "if (signatures.length === 0) throw", "if (signatures.length < 0) throw"]
    ]
  ),
  ...rules(
    "transaction/validate.ts",
    ["transaction/validation.test.ts", "transaction/bounds.test.ts"],
    [
      [
        "any sequence number",
        "if (isBadSequence(frame, ledger, account.seqNum)) return",
        "if (account.seqNum < 0n) return"
      ],
      [
        "an envelope outlives its time",
        "bounds.maxTime < ledger.closeTime + offset) return true",
        "bounds.maxTime < 0n) return true"
      ],
      ["an envelope outlives its ledger", "return max !== 0 && max <= ledger.ledgerSeq", "return max < 0"],
      [
        "the last ledger is one too late",
        "return max !== 0 && max <= ledger.ledgerSeq",
        "return max !== 0 && max < ledger.ledgerSeq"
      ],
      [
        "a minimum ledger is not waited for",
        "cond.v2.ledgerBounds.minLedger > ledger.ledgerSeq",
        "cond.v2.ledgerBounds.minLedger > 1e12"
      ],
      [
        "no signature is needed for the source",
        "if (!checker.checkAccount(account, account.thresholds[Threshold.low]!)) return fail(",
        "if (account === null) return fail("
      ],
      [
        "a signature too many",
        "return checker.allUsed\n    ? { error: undefined",
        "return checker.allUsed || !checker.allUsed\n    ? { error: undefined"
      ],
      [
        "a contract call beside another operation",
        "(isSoroban && tx.operations.length !== 1)",
        "(isSoroban && tx.operations.length < 1)"
      ],
      ["a memo on a contract call", "(frame.tx.memo.type !== MemoType.none || isMuxed(frame))", "isMuxed(frame)"],
      ["any resource fee", "return declared < needed ?", "return declared < 0n ?"],
      [
        "any bid of a fee bump",
        "if (frame.inclusionFeeStroops < least) return plain",
        "if (frame.inclusionFeeStroops < -1n) return plain"
      ],
      [
        "no signature of the payer",
        "if (!checker.checkAccount(account, account.thresholds[Threshold.low]!)) return plain",
        "if (account === null) return plain"
      ]
    ]
  ),
  ...rules(
    "node/CloseLimit.ts",
    ["node/closeLimit.test.ts"],
    [["a ledger takes the time it likes", "if (ran > 0 && now() - began >= millis) throw", "if (ran < 0) throw"]]
  ),
  ...rules(
    "node/Queue.ts",
    ["node/closeLimit.test.ts"],
    [["what there was no time for grows older", "      if (isDeferred.has(waiting.frame)) continue\n", ""]]
  ),
  ...rules(
    "node/Queue.ts",
    ["node/queue.test.ts"],
    [
      [
        "a replacement for nothing more",
        "if (frame.fullFeeStroops < leastFeeStroops) return",
        "if (frame.fullFeeStroops < 0n) return"
      ],
      ["what was dropped comes again", 'if (this.isBanned(frame)) return { is: "tryAgainLater" }', ""],
      [
        "two transactions of one account",
        'if (!frame.isFeeBump || frame.tx.seqNum !== current.tx.seqNum) return { is: "tryAgainLater" }',
        ""
      ],
      ["one waits for ever", "if (waiting.age < PENDING_LEDGERS_MAX) continue", "if (waiting.age < 1e9) continue"],
      ["the lowest bid goes first", "compareBids(b.frame, a.frame)", "compareBids(a.frame, b.frame)"],
      [
        "a payer promises the same money twice",
        "payerBusyStroops: this.#promised(frame.feeSource) }\n    }",
        "payerBusyStroops: 0n }\n    }"
      ]
    ]
  ),
  ...rules(
    "engine/sac/SacBalances.ts",
    ["engine/sac/Sac.test.ts", "engine/rules.test.ts"],
    [
      ["a contract spends what it has not", "if (balance.amount < amount) {", "if (balance.amount < 0n) {"],
      [
        "a trustline beyond its range",
        "const balance = line.balance + amount\n    if (balance < range.min || balance > range.max) throw",
        "const balance = line.balance + amount\n    if (balance < -range.max) throw"
      ],
      [
        "an account below its reserve",
        "const balance = account.balance + amount\n    if (balance < range.min || balance > range.max) throw",
        "const balance = account.balance + amount\n    if (balance < 0n) throw"
      ],
      [
        "a deauthorized balance moves",
        'if (!this.isAuthorized(owner)) throw fail(SacError.balanceDeauthorized, "balance is deauthorized")',
        ""
      ],
      [
        "any balance is clawed back",
        "if ((this.#line(owner.accountId)[1].flags & LineFlag.clawback) === 0) {",
        "if (this.#line(owner.accountId)[1].flags < 0) {"
      ]
    ]
  ),
  ...rules(
    "engine/sac/SacAllowance.ts",
    ["engine/sac/Sac.test.ts", "engine/rules.test.ts"],
    [
      [
        "an allowance after its ledger",
        "allowance === undefined || allowance.liveUntil < host.input.ledgerSeq ?",
        "allowance === undefined ?"
      ]
    ]
  ),
  ...rules(
    "engine/host/Storage.ts",
    ["engine/auth/Auth.test.ts", "engine/rules.test.ts"],
    [
      [
        "entries outside of the footprint",
        "if (writable === undefined || (write && !writable)) throw",
        "if (write && writable === false) throw"
      ],
      [
        "a read-only entry is written",
        "if (writable === undefined || (write && !writable)) throw",
        "if (writable === undefined) throw"
      ],
      ["a temporary entry lives on", "if (durabilityOf(key) === Durability.temporary) return undefined", ""]
    ]
  ),
  ...rules(
    "engine/host/Host.ts",
    ["engine/rules.test.ts"],
    [["what has expired is stamped", "if (!storage.hasExpired(id, key))", "if (true)"]]
  ),
  ...rules(
    "transaction/validate.ts",
    ["transaction/lifetimes.test.ts"],
    [["a restoration has no memo", "frame.tx.operations[0]!.body.type === OperationType.invokeHostFunction &&", ""]]
  ),
  ...rules(
    "engine/wasm/Vm.ts",
    ["engine/wasm/hostileValues.daily.test.ts"],
    [["a value is nested without end", "if (isTooDeep(value)) throw", "if (bytes < 0) throw"]]
  ),
  ...rules(
    "rpc/simulateTransaction.ts",
    ["rpc/simulateTransaction.test.ts"],
    [["a simulation takes a new account as it is", "view.store.observedAt(asWhenApplied)", "view.store"]]
  ),
  ...rules(
    "transaction/operations/claimPredicate.ts",
    ["transaction/claimableBalances.test.ts"],
    [
      [
        "a balance is claimed in the second that ends it",
        "return predicate.absBefore > now",
        "return predicate.absBefore >= now"
      ],
      ["a balance has conditions of any depth", "if (level > LEVELS_MAX) return false", ""]
    ]
  ),
  ...rules(
    "transaction/operations/claimClaimableBalance.ts",
    ["transaction/claimableBalances.test.ts"],
    [
      [
        "a balance is paid into a frozen entry",
        "if (isFrozen(context, balance.asset)) return result(Code.trustLineFrozen)",
        ""
      ]
    ]
  ),
  ...rules(
    "transaction/operations/clawbackClaimableBalance.ts",
    ["transaction/claimableBalances.test.ts"],
    [
      [
        "every claimable balance is clawed back",
        "if (!mayBeClawedBack(balance)) return result(Code.notClawbackEnabled)",
        ""
      ]
    ]
  ),
  ...rules(
    "transaction/reserves.ts",
    ["transaction/invariants.test.ts"],
    [
      [
        "a balance's sponsor pays one reserve for all claimants",
        'counted(sponsor, "numSponsoring", reservesOf(entry))',
        'counted(sponsor, "numSponsoring", 1)'
      ]
    ]
  ),
  ...rules(
    "transaction/sponsorshipTransfer.ts",
    ["transaction/sponsorship.test.ts"],
    [
      [
        "any account revokes another's sponsorship",
        'if (!same(reserve.sponsor ?? reserve.owner!, source)) return "notSponsor"',
        ""
      ],
      ["a sponsor gives back what its owner cannot keep", 'return "lowReserve"', 'return "ok"']
    ]
  ),
  ...rules(
    "transaction/operations/trustFlags.ts",
    ["transaction/trustFlags.test.ts"],
    [["leave is lessened without the revocable flag", "if (lessens && !isRevocable(context))", "if (lessens && false)"]]
  ),
  ...rules(
    "transaction/exchange/convert.ts",
    ["transaction/liquidityPools.test.ts"],
    [
      [
        "a pool loses against a book that is as dear",
        "swap.sent * booked.received > swap.received * booked.sent",
        "swap.sent * booked.received >= swap.received * booked.sent"
      ]
    ]
  ),
  ...rules(
    "transaction/exchange/poolAmounts.ts",
    ["transaction/liquidityPools.test.ts"],
    [["a pool takes no fee", "(AFTER_FEE * reserveOut * sent)", "(WHOLE * reserveOut * sent)"]]
  ),
  ...rules(
    "transaction/exchange/Pools.ts",
    ["transaction/invariants.test.ts"],
    [["a line is held open by a pool that was left", "withPoolUses(line!, -1)", "withPoolUses(line!, 0)"]]
  ),
  ...rules(
    "transaction/ClassicEvents.ts",
    ["transaction/invariants.test.ts"],
    [
      [
        "a pool's part of a trade is not reported",
        "else if (claim.type === ClaimAtomType.liquidityPool)",
        "else if (claim.type === ClaimAtomType.v0 && 'liquidityPool' in claim)"
      ]
    ]
  ),
  ...rules(
    "node/fork/fetchEntries.ts",
    ["fork.daily.test.ts"],
    [
      ["a node that lags behind a fork is believed", "if (latestLedger < at.sequence)", "if (latestLedger < 0)"],
      [
        "an account of a fork was used in the future",
        "seqLedger: earlier(v3.seqLedger, sequence)",
        "seqLedger: v3.seqLedger"
      ]
    ]
  ),
  ...rules(
    "rpc/simulateTransaction.ts",
    ["fork.daily.test.ts"],
    [
      [
        "an entry that is not fetched fails a simulation",
        "if (error instanceof NotFetched) throw error",
        "if (error === undefined) throw error"
      ]
    ]
  ),
  ...rules(
    "transaction/applyTransaction.ts",
    ["fork.daily.test.ts"],
    [
      [
        "an entry that is not fetched fails a transaction",
        "if (error instanceof NotFetched) throw error",
        "if (error === undefined) throw error"
      ]
    ]
  ),
  ...rules(
    "rpc/answerRequest.ts",
    ["fork.daily.test.ts"],
    [
      [
        "a fork's nonce changes with each attempt",
        "(drawn[draws++] ??= randomBytes(length))",
        "randomBytes(length + 0 * draws)"
      ]
    ]
  ),
  ...rules(
    "node/journalText.ts",
    ["fork.daily.test.ts"],
    [
      [
        "what a fork deleted comes back",
        "for (const key of snapshot.gone ?? [])",
        "for (const key of [] as Array<string>)"
      ]
    ]
  ),
  ...rules(
    "transaction/frozenKeys.ts",
    ["transaction/frozenKeys.test.ts"],
    [
      ["a frozen account acts", "sourceKeysOf(frame).some(isFrozen) ||", ""],
      ["a frozen key is in a footprint", "footprintKeysOf(frame).some(isFrozen) ||", ""],
      [
        "XLM goes to a frozen account",
        "asset.type === AssetType.native ? account(holder)",
        "asset.type === AssetType.native ? []"
      ],
      ["what the network excepted is refused", " || isExcepted(settings, frame.innerHash)", ""]
    ]
  ),
  ...rules(
    "transaction/validate.ts",
    ["transaction/frozenKeys.test.ts"],
    [["a frozen account pays fees", "if (isPayerFrozen(frame, ledger.settings))", "if (frame === undefined)"]]
  ),
  ...rules(
    "rpc/ledgerCloseMeta.ts",
    ["rpc/ledgerCloseMeta.test.ts"],
    [["contract state has no size", "settings.fees.stateSizeBytes", "0n"]]
  ),
  ...rules(
    "node/friendbot.ts",
    ["node/friendbot.test.ts"],
    [
      [
        "the friendbot closes a ledger in which it failed",
        "return closed.record.transactions.every(({ succeeded }) => succeeded) ? closed : undefined",
        "return closed"
      ]
    ]
  )
]
