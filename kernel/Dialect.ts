// Two spellings of one wire. The specification's names are neutral (`ledger:testnet`, `invalid_ledger_…`,
// `extensions.catalog`); the live x402 ecosystem uses `stellar:testnet`, `invalid_stellar_…`, `extensions.bazaar`. All
// other modules use only the neutral form; this module maps between the two. Pure.
import { Option } from "effect"

export type Dialect = "ledger" | "stellar"

/** A network in its neutral spelling. */
export type NeutralNetwork = "ledger:testnet" | "ledger:pubnet"

interface NetworkSpelling {
  readonly dialect: Dialect
  readonly network: NeutralNetwork
}

/** Reads a network in either spelling; None for anything else. Exact match: no case folding, no trimming. */
export const readNetwork = (spelled: string): Option.Option<NetworkSpelling> => {
  switch (spelled) {
    case "ledger:testnet":
    case "ledger:pubnet":
      return Option.some({ dialect: "ledger", network: spelled })
    case "stellar:testnet":
      return Option.some({ dialect: "stellar", network: "ledger:testnet" })
    case "stellar:pubnet":
      return Option.some({ dialect: "stellar", network: "ledger:pubnet" })
    default:
      return Option.none()
  }
}

/** `ledger:testnet` → `stellar:testnet` in the stellar dialect. */
export const encodeNetwork = (network: NeutralNetwork, dialect: Dialect): string =>
  dialect === "ledger" ? network : network.replace("ledger:", "stellar:")

/** A reason or another name that holds `ledger` as a part between underscores. */
export const encodeReason = (reason: string, dialect: Dialect): string =>
  dialect === "ledger"
    ? reason
    : reason
        .split("_")
        .map((part) => (part === "ledger" ? "stellar" : part))
        .join("_")

/** The neutral form of a name in either spelling. */
export const neutralReason = (reason: string): string =>
  reason
    .split("_")
    .map((part) => (part === "stellar" ? "ledger" : part))
    .join("_")

const extensionSpellings: ReadonlyArray<readonly [neutral: string, stellar: string]> = [["catalog", "bazaar"]]

/** The neutral key of an extension; a key with one spelling stays unchanged. */
export const neutralExtension = (key: string): string =>
  extensionSpellings.find(([, stellar]) => stellar === key)?.[0] ?? key

export const encodeExtension = (neutral: string, dialect: Dialect): string =>
  dialect === "ledger" ? neutral : (extensionSpellings.find(([ours]) => ours === neutral)?.[1] ?? neutral)
