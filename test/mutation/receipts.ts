// Removes the checks of the published scripts and of `tollkeeper receipts verify`, one at a time: what a forger, a
// fork, or a witness that signs everything would need.
import type { Mutation } from "./Mutation.ts"

const inFile =
  (file: string, test: string) =>
  (name: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file, from, to }],
    catcher: ["node_modules/vitest/vitest.mjs", "run", "--config", "test/vitest.config.ts", test]
  })

const environment = { TOLLKEEPER_TEST_DATABASES: "pglite" }
/** Of the plugin, over a facilitator with the embedded database. */
const plugin =
  (file: string, test: string, title: string) =>
  (name: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file: `plugins/receipts/${file}`, from, to }],
    catcher: [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--config",
      "test/vitest.config.ts",
      `test/plugins/receipts/${test}.daily.test.ts`,
      "-t",
      title
    ],
    environment
  })

const amended = plugin("log/Epochs.ts", "log", "adds what it alone had published")
const restored = plugin("log/Epochs.ts", "crash", "a backup that is restored")
const goesBack = plugin("log/Epochs.ts", "log", "begins an epoch where it would go back")
const paid = plugin("log/sequenceOutcomes.ts", "receipts", "an exact payment")
const rotated = plugin("keys/ReceiptKeys.ts", "keys", "a rotation")
const held = plugin("keys/readSecrets.ts", "keys", "own key signs no receipts")
const apart = inFile("plugins/receipts/readApart.ts", "test/plugins/receipts/readApart.test.ts")
const broken = plugin("readApart.ts", "unreadable", "while their table is broken")
const locked = (name: string, from: string, to: string): Mutation => ({
  ...plugin("readApart.ts", "unreadable", "while their table is locked")(name, from, to),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
})
const verify = inFile("examples/receipts/verify.mjs", "test/examples/receipts/verify.test.ts")
const witness = inFile("examples/receipts/witness.mjs", "test/examples/receipts/stories.test.ts")
const stories = inFile("examples/receipts/two-stories.mjs", "test/examples/receipts/stories.test.ts")
const cosign = inFile("examples/receipts/cosign.mjs", "test/runtime/verifyReceipt.test.ts")
const check = inFile("examples/receipts/check.mjs", "test/runtime/verifyReceipt.test.ts")
const audited = (name: string, from: string, to: string): Mutation => ({
  ...inFile("runtime/readLog.ts", "test/kernel/audit/log.daily.test.ts")(name, from, to),
  environment
})
const command = inFile("runtime/verifyReceipt.ts", "test/runtime/verifyReceipt.test.ts")

export const mutations: ReadonlyArray<Mutation> = [
  verify("verify.mjs accepts any algorithm", 'alg === "EdDSA" && key', "key"),
  verify("verify.mjs accepts a fourth part", "!more.length && ", ""),
  verify("verify.mjs accepts any signature", "(await isSigned(key, bytesOf(seal), `${header}.${payload}`))", "true"),
  verify("verify.mjs takes the log's key for a receipt", 'keysOf(did, "receipt")', "did.verificationMethod"),
  verify("verify.mjs accepts claims of another issuer", "claims.iss === did.id && ", ""),
  verify(
    "verify.mjs accepts JSON that is not canonical",
    "(await sha256(canonical(claims))) === (await sha256(bytesOf(payload)))",
    "true"
  ),
  verify("verify.mjs accepts a lone surrogate", "!value.isWellFormed()", "false"),
  verify("verify.mjs accepts a witness's line as the log's", "— \\2 (\\S+)", "— \\S+ (\\S+)"),
  verify(
    "verify.mjs accepts a line that was not signed",
    "subarray(4), body)",
    'subarray(4), body.split("\\n", 3).join("\\n") + "\\n")'
  ),
  verify(
    "verify.mjs accepts another host's checkpoint",
    '`did:web:${encodeURIComponent(origin.split("/log")[0])}` === did.id',
    "origin"
  ),
  verify("verify.mjs accepts a size in any form", "(0|[1-9]\\d*)", "(.+)"),
  verify("verify.mjs accepts a receipt key's checkpoint", 'keysOf(did, "log")', "did.verificationMethod"),
  verify("verify.mjs accepts an index beyond the tree", "index < size && ", ""),
  verify("verify.mjs accepts a path of any length", "path.length === 1", "path.length >= 1"),
  verify("verify.mjs does not compare the older root", "was === older.root && ", ""),
  verify(
    "verify.mjs does not bind the receipt to its leaf",
    "one.proof && JSON.parse(one.record).receipt === name",
    "one.proof"
  ),
  verify(
    "verify.mjs believes what is beside the record",
    "JSON.parse(one.record).receipt === name",
    "(one.receipt ?? JSON.parse(one.record).receipt) === name"
  ),
  verify("verify.mjs accepts a record that is not canonical", "canonical(JSON.parse(record))", "record"),
  verify("verify.mjs accepts a key before its time", "key.validFrom <= at && ", ""),
  verify("verify.mjs accepts a retired key", "!(at > key.validUntil)", "true"),
  witness("the witness signs every continuation", "checkConsistency(known, tree, path)", "Promise.resolve()"),
  witness("the witness signs a fork of the same size", "known.root !== tree.root", "false"),
  witness("the witness signs without the last size", "Number(size) !== known.size", "false"),
  witness("the witness fails on a proof that is no base64", ".catch(refusedAs(400))", ""),
  witness("the witness forgets what it signed", "await store(file, { ...state, signed })", ""),
  witness("the witness signs any log", '`did:web:${encodeURIComponent(origin.split("/")[0])}` !== did.id', "false"),
  stories("two-stories.mjs believes tiles", "(await tiles.root(0, tree.size)) !== tree.root", "false"),
  stories("two-stories.mjs compares two epochs", "if (one !== other) throw", "if (false) throw"),
  stories("two-stories.mjs believes a ledger that has forgotten", 'result.status === "NOT_FOUND" &&', "false &&"),
  inFile("examples/receipts/tiles.mjs", "test/examples/receipts/stories.test.ts")(
    "the tiles of a later epoch are read below the first",
    "own === undefined ?",
    "true ?"
  ),
  stories("two-stories.mjs names no witness", "names(a).filter((name) => names(b).includes(name))", "[]"),
  check(
    "a receipt of another payment is accepted",
    "if (differing.length > 0) throw new Error(`the receipt",
    "if (false) throw new Error(`the receipt"
  ),
  check(
    "a retired key is believed without a proof",
    "if (proven === undefined && key.validUntil",
    "if (false && key.validUntil"
  ),
  check("a retired key of the log is believed", "!isSeen && !(await isOfToday(proven.proof, did))", "false"),
  check(
    "a key that is announced to retire counts as retired",
    "!(validUntil * 1000 <= Date.now())",
    "validUntil === undefined"
  ),
  check("the hash of a long resource is not compared", "resourceHash === (await hashText(url))", "true"),
  check(
    "a delivery that was not signed counts",
    "!(await crypto.subtle.verify(how, publicKey, bytesOf(signed), bytes))",
    "false"
  ),
  check("an unlinked delivery is complete", 'if (!delivery.transaction) return "UNLINKED"', ""),
  command("the expected terms are not compared", "String(claims[name]) === value ||", "true ||"),
  command("another facilitator's document is accepted", "did.id !== issuer", "false"),
  command(
    "a log that forked since is accepted",
    "await checkConsistency(then, now, await tiles.consistency(then.size))",
    ""
  ),
  command("another epoch's log is accepted", "if (now.origin !== then.origin)", "if (false)"),
  command("a log that went back is compared", "if (now.size < then.size)", "if (false)"),
  command("any key's attestation is accepted", "addressOfKey(publicKeyJwk) === signer", "true"),
  command("a long resource is not compared", 'claims["resourceHash"] === (await hashText(value))', "true"),
  command("a witness that did not cosign is passed over", "if (seconds === undefined) continue", ""),
  command("a witness without a proof is passed over", "if (notes.length === 0)", "if (false)"),
  cosign(
    "any cosignature counts",
    'await crypto.subtle.verify("Ed25519", publicKey, bytes.subarray(12), signed)',
    "true"
  ),
  cosign("any text is a witness's key", "return isWhole ? ", "return true ? "),
  amended("a replica keeps what it published to itself", "known.epoch < epoch && known !== compared", "false"),
  amended("a statement is not signed anew", "statement = null where", "statement = statement where"),
  restored("an embedded database in another folder continues", "if (!isEmbedded) return false", "return false"),
  goesBack("a shorter log continues", "|| known.size > Number(size)", ""),
  goesBack(
    "a new epoch names what the database still has",
    "(known.epoch === former.epoch && known.size > Number(former.size))",
    "false"
  ),
  paid(
    "a leaf does not name its receipt",
    "...(receipt === undefined ? {} : { receipt: hashText(crypto, receipt.jws) })",
    "...{}"
  ),
  rotated("a new key signs immediately", "const announcedSeconds = 30", "const announcedSeconds = 0"),
  rotated(
    "a former key is not retired",
    "yield* sql`update receipts_keys set valid_until = ${at} where kid = ${former.kid}`",
    ""
  ),
  rotated("a key takes effect within a second", "date_trunc('second',", "date_trunc('microseconds',"),
  plugin("log/Checkpoints.ts", "keys", "a rotation")(
    "a checkpoint of a retired key stays the newest",
    "where receipts_checkpoints.signed_at <",
    "where false and receipts_checkpoints.signed_at <"
  ),
  plugin("log/Checkpoints.ts", "log", "begins an epoch where it would go back")(
    "a frozen epoch keeps a checkpoint of a retired key",
    "and c.signed_at >= ${new Date(key.validFrom)}::timestamptz)",
    ")"
  ),
  plugin("Receipts.ts", "keys", "leaves its receipt")(
    "an outcome is logged without the receipt that another replica can sign",
    "- at > leftToOthersMillis",
    "- at > 0"
  ),
  plugin("plugin.ts", "keys", "leaves its receipt")(
    "a replica without the key in force is ready",
    "inForce(use, now)?.sign === undefined",
    "inForce(use, now) === undefined"
  ),
  {
    ...audited("the audit reads the records before the log", "", ""),
    changes: [
      {
        file: "runtime/commands/audit.ts",
        from: "const log = withLog ? yield* readLog(Option.getOrUndefined(logCopy)) : undefined",
        to: ""
      },
      {
        file: "runtime/commands/audit.ts",
        from: "if (log === undefined)",
        to: "const log = withLog ? yield* readLog(Option.getOrUndefined(logCopy)) : undefined\n  if (log === undefined)"
      }
    ]
  },
  audited("the audit does not compare keys", "compareKeys(keys, leaves, wrong)", ""),
  broken(
    "an error of a stored receipt's reading ends the transaction of a batch",
    "readApart(sql, readTimeout, read)",
    "read"
  ),
  locked("a stored receipt's reading waits as long as any", "Duration.seconds(1)", "Duration.minutes(1)"),
  locked(
    "every outcome of a batch waits for its stored receipt",
    "(restsUntil = now + restMillis)",
    "(restsUntil = now)"
  ),
  apart("a read apart keeps its statement timeout", "yield* sql`select ${set(row!.before)}`", ""),
  apart("a read apart has the transaction's timeout", "String(Duration.toMillis(timeout))", '"0"'),
  held("an account's key signs receipts", "yield* refuseAccounts(keys)", "")
]
