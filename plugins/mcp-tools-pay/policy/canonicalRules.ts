// Rewrites the operator's rules in the spelling that payments use, once, when the settings are read: origins as in
// `canonicalOrigin`, recipients as the account or contract that receives the balance, assets as contract addresses. A
// rule for a value that no payment can have would never match, so it stops the startup. Pure.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { canonicalOrigin, hostOf } from "../../mcp-tools/contract.ts"
import type { PolicyRule } from "./policySection.ts"

/** `*.host` without a port, or `https://host` without a path; undefined for anything else. */
const originOf = (text: string): string | undefined => {
  if (text.startsWith("*.")) {
    const origin = /^[^/:?#@\\\s]+$/.test(text.slice(2)) ? canonicalOrigin(`https://${text.slice(2)}`) : undefined
    return origin === undefined ? undefined : `*.${hostOf(origin)}`
  }
  const origin = canonicalOrigin(text)
  const { pathname = "", search = "" } = origin === undefined ? {} : new URL(text)
  return pathname === "/" && search === "" && !/[?#\s]/.test(text) ? origin : undefined
}

/** An account, without the id of a muxed address, or a contract. */
const recipientOf = (text: string): string | undefined => {
  const address = text.toUpperCase()
  if (StrKey.isValidMed25519PublicKey(address))
    return StrKey.encodeEd25519PublicKey(StrKey.decodeMed25519PublicKey(address).slice(0, 32))
  return StrKey.isValidEd25519PublicKey(address) || StrKey.isValidContract(address) ? address : undefined
}

const assetOf = (text: string): string | undefined => {
  const address = text.toUpperCase()
  return StrKey.isValidContract(address) ? address : undefined
}

/** Same form as key labels: lower case, limited length. */
const agentOf = (text: string): string | undefined => {
  const agent = text.toLowerCase()
  return /^(key:[a-z0-9-]{1,32}|stdio)$/.test(agent) ? agent : undefined
}

const expected = {
  agents: "agents are named as key:LABEL, or stdio",
  assets: "an asset is named by its contract's address, C…",
  recipients: "a recipient is named by its address, G… or C…",
  origins: "an origin is named as https://host, with a port where it has one, or *.host for its subdomains"
} as const

const readers = { agents: agentOf, assets: assetOf, recipients: recipientOf, origins: originOf }

export const canonicalRules = Effect.fnUntraced(function* (rules: ReadonlyArray<PolicyRule>) {
  const read = Effect.fnUntraced(function* (rule: PolicyRule, member: keyof typeof readers) {
    const named = rule[member].map((text) => readers[member](text.trim()))
    const wrong = named.indexOf(undefined)
    if (wrong < 0) return named as ReadonlyArray<string>
    const message = `the rule ${rule.name} names ${rule[member][wrong]} and would never match: ${expected[member]}`
    return yield* new SettingsRefused({ path: `policy.rules.${member}`, message })
  })
  return yield* Effect.forEach(
    rules,
    Effect.fnUntraced(function* (rule) {
      const [agents, assets] = [yield* read(rule, "agents"), yield* read(rule, "assets")]
      const [recipients, origins] = [yield* read(rule, "recipients"), yield* read(rule, "origins")]
      return { ...rule, agents, assets, recipients, origins }
    })
  )
})
