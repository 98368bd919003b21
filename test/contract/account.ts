// The spending account of agents: its sources, and the interface in its sections.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { batchFolder } from "./batch.ts"
import { buildContract, sha256Hex, wasmLines } from "./build.ts"
import { functionEntry } from "./drafts.ts"
import { concat, interfaceSections, notesSection, text } from "./sections.ts"

export const accountFolder = fileURLToPath(new URL("../../plugins/mcp-tools-pay/account/", import.meta.url))

const policy = [
  ["agent", "id"],
  ["asset", "address"],
  ["cap", "i128"],
  ["expires_at", "u64"],
  ["recipients", "addresses"]
] as const

const functions = [
  functionEntry("__constructor", "Creates the account with its first policy. Not audited.", [
    ["owner", "address"],
    ...policy
  ]),
  functionEntry("allow", "Replaces the policy; the owner authorizes.", policy),
  functionEntry("revoke", "Ends the policy; the owner authorizes.", []),
  functionEntry(
    "withdraw",
    "Moves a token of the account; the owner authorizes.",
    [
      ["token", "address"],
      ["to", "address"],
      ["amount", "i128"]
    ],
    "value"
  ),
  functionEntry("state", "The owner, the policy or void, and the latest day's total or void.", [], "value")
]

const errors = {
  InvalidArgument: 301,
  NotAllowed: 302,
  Expired: 303,
  OtherCall: 304,
  OtherRecipient: 305,
  AboveCap: 306,
  AmountTooLarge: 307
}

const errorsEntry = {
  kind: 4,
  udtErrorEnumV0: {
    doc: text("Those of tokens come through."),
    lib: text(""),
    name: text("AccountError"),
    cases: Object.entries(errors).map(([name, value]) => ({ doc: text(""), name: text(name), value }))
  }
}

/** The contract in its deployed form. */
export const buildAccount = (
  source: string = [`${batchFolder}host.as`, `${accountFolder}account.as`]
    .map((file) => readFileSync(file, "utf8"))
    .join("\n")
): Promise<Uint8Array> =>
  buildContract(
    source,
    concat(
      interfaceSections([...functions, errorsEntry]),
      notesSection([
        ["audited", "no"],
        ["license", "Apache-2.0"],
        ["source", "plugins/mcp-tools-pay/account/account.as"]
      ])
    )
  )

/** The module as a source of the program, which uploads it to ledgers that do not have it yet. */
export const accountSource = (wasm: Uint8Array): string =>
  `// The spending account's contract in its deployed form, built by npm run contract; not to be edited. account.wasm
// has the same bytes. Its code has not been audited.

/** sha256 of the module: the name of its code on every ledger. */
export const accountWasmHash = "${sha256Hex(wasm)}"

/** The module in base64. */
export const accountWasmBase64 = [
${wasmLines(wasm, "  ")}
].join("")
`
