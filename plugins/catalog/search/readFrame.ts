// Finds the frame of a query: the words that people of this field add to any question. They describe the form of
// payment ("pay per call", "x402", "in usdc"), the caller ("for my ai agent"), missing requirements ("no api key") and
// the medium ("mcp server"). They apply to every listing, but few listings contain them, so a search would prefer those
// few. We remove such words, and some of them become a preference for listings of their kind. A word that is part of
// the topic ("usdc balance of a wallet") stays. A query that consists only of such words stays unchanged. Pure.

/**
 * Preferences among similarly relevant hits: the cheapest, tools, or offers in the asset that represents the dollar.
 */
export type Preference = "cheap" | "tool" | "dollar"

interface Framed {
  /** The query without its frame. */
  readonly query: string
  readonly words: ReadonlyArray<string>
  readonly prefers: ReadonlyArray<Preference>
}

const coin = "(?:usdc|usd coins?|eurc|xlm|lumens?|stellar|soroban)"
const chain = "(?:[\\s-]+(?:payments?|tokens?|network|testnet|mainnet|blockchain|ledger|wallets?|stablecoins?))*"
const coins = `${coin}${chain}(?:\\s*(?:,|/|and|or|on|over|via|with)\\s*(?:the\\s+)?${coin}${chain})*`
const joint = "(?:(?:that|which|and|can be|i can|we can|to)\\s+)*"
const means = "(?:\\s+(?:for|it|in|with|via|by|using|on|over|from|through|the|my))*"
const paying =
  `${joint}(?:accept(?:s|ed|ing)?|payable|paid|pays?|paying|priced|settle[sd]?|settling|charge[sd]?|charging|billed|` +
  `denominated)${means}`
/** Verbs that may also belong to a topic. */
const supporting = `${joint}(?:tak(?:es?|ing)|support(?:s|ing)?|works? with|payments?)${means}`
const unit = "(?:api[\\s-]+)?(?:calls?|requests?|quer(?:y|ies)|uses?|usage|hits?|invocations?|lookups?)"
const unneeded =
  "(?:api[\\s-]*keys?|sign(?:ing)?[\\s-]*ups?|registrations?|registering|accounts?|subscriptions?|subscribing|" +
  "log[\\s-]*ins?|logging in|monthly (?:fees?|plans?|bills?))"
const agent =
  "(?:(?:ai|llm|gpt|autonomous|agentic|intelligent|software)[\\s-]+)*(?:agents?|ai[\\s-]+(?:assistants?|bots?|apps?))"
const whose = "(?:(?:an?|my|our|your|the|other)\\s+)?"

const per = `(?:per|by the|for each)[\\s-]+${unit}`
const perCall = [
  `(?:with\\s+)?(?:pay|payable|paid|paying|pays|priced|pricing|billed|billing|charged)[\\s,-]+(?:only[\\s-]+)?${per}` +
    `(?:\\s+(?:in|with|via)\\s+${coins})?`,
  `(?:with\\s+)?per[\\s-]+${unit}(?:\\s+(?:pricing|billing|payments?|fees?|priced|billed|basis))?`,
  "pay[\\s-]+as[\\s-]+(?:you|i|we)[\\s-]+go(?:\\s+pricing)?",
  "(?:with\\s+)?(?:usage|consumption)[\\s-]+based(?:\\s+(?:pricing|billing))?|metered (?:pricing|billing|access)"
]
const byProtocol = [
  "(?:(?:with|via|by|using|through|for|accept(?:s|ing)|support(?:s|ing))\\s+)*(?:micro|nano)[\\s-]?payments?",
  "(?:(?:that|and)\\s+)?(?:(?:with|via|by|using|over|through|on|accept(?:s|ing)|support(?:s|ing)|speaks?|payable|" +
    "paid|pay|compatible with)\\s+)*(?:the\\s+)?(?:http[\\s-]*402|x-?402)(?:[\\s-]+(?:v?[12]|protocol|standard|" +
    `enabled|compatible|compliant|payments?|payable|native|paid|ready|supported))*` +
    `(?:\\s+(?:in|with|on|and|via)\\s+${coins})?`,
  `${paying}\\s+${coins}`
]
const whoAsks = [
  `(?:can|could|should|let|lets)\\s+(?:my|our|an|the)\\s+${agent}(?:\\s+use)?`,
  `(?:my|our|an)\\s+${agent}\\s+(?:needs?|wants?|has|must|should|can|could|will)(?:\\s+to)?`,
  `i(?:'m|\\s+am)\\s+an?\\s+${agent}(?:\\s+(?:and|that|who|looking for|trying to))*`,
  "(?:(?:usable|callable|built|made|designed|ready|suitable|intended|meant)\\s+)?" +
    "(?:for|by\\s+(?=(?:an?\\s+)?(?:ai|llm|autonomous)\\b))\\s*(?:use\\s+(?:by|in|with)\\s+)?" +
    `${whose}${agent}(?:\\s+to\\s+(?:use|call))?`,
  `(?:that|which)\\s+${whose}${agent}\\s+can\\s+(?:use|call|buy|pay(?:\\s+for)?)`,
  "agent[\\s-]+(?:ready|friendly|native|payable|callable|first)|agentic"
]
const notNeeded = [
  "(?:(?:with|that|which|and)\\s+)*(?:no|without|zero|needs? no|requires? no|does(?:n['’]t| not) (?:need|require))" +
    `\\s+(?:(?:an?|any|the|having|needing|creating|opening)\\s+)*${unneeded}(?:\\s*(?:,|and|or|nor|&)\\s*` +
    `(?:(?:no|an?|any|without)\\s+)*${unneeded})*(?:\\s+(?:needed|required|necessary))?`,
  "subscription[\\s-]free|keyless (?=api)"
]
const tools = "(?:an?\\s+)?mcp[\\s-]+(?:servers?|tools?|endpoints?|services?)|(?:over|via|through)\\s+mcp"

const start = "(?<![\\p{L}\\p{N}])"
const end = "(?![\\p{L}\\p{N}])"
const whole = (source: string): RegExp => new RegExp(`${start}(?:${source})${end}`, "giu")
const frame = whole([...perCall, ...byProtocol, ...whoAsks, ...notNeeded].join("|"))
const tool = whole(tools)
/** After one of these, a coin belongs to a phrase: "price of usdc", "euros to usdc". */
const joints = "(?:about|and|as|between|buy|from|into|of|or|send|sell|swap|to|versus|vs)"
const lone = "(?:usdc|eurc|xlm|stellar)"
const last = `(?<!${start}${joints})[\\s,(]+`
/** A coin or the network at either end of a query, or after a verb that may also belong to a topic. */
const edges = new RegExp(
  `^\\s*${lone}${end}(?!\\s*(?:${joints}|in)${end})\\s*(?:[,:]\\s*)?|${start}${supporting}\\s+${coins}${end}|` +
    `${last}(?:(?:on|over|via|using|with|in|for)\\s+)?(?:the\\s+)?${lone}${chain}\\s*[.?!)]*$`,
  "giu"
)
/** A coin or the network at the end of a query, without a preposition. */
const trailing = new RegExp(`(?<!${start}(?:for|in|with))${last}${lone}\\s*[.?!)]*$`, "giu")
/** Words of money. With one of them, a coin is the topic. */
const ofMoney = whole(
  "accounts?|address(?:es)?|airdrops?|amm|anchors?|assets?|balances?|blockchain|bridg(?:e|es|ing)|" +
    "burn(?:s|ed)?|cap|chains?|charts?|coins?|contracts?|convert(?:s|er|ing)?|conversion|course|crypto\\w*|" +
    "currenc(?:y|ies)|defi|depeg\\w*|dex(?:es)?|dollars?|eur|euros?|exchanges?|explorers?|fees?|forex|" +
    "fund(?:s|ing)?|fx|gas|holders?|docs?|documentation|ecosystem|foundation|horizon|mainnet|network|nodes?|" +
    "sdk|status|testnet|keypairs?|ledgers?|lend(?:ing)?|liquidity|lumens?|market|mint(?:s|ed|ing)?|multisig|" +
    "nfts?|orderbooks?|payments?|pools?|prices?|quotes?|rates?|remit\\w*|rpc|sell|send|sep|signers?|soroban|" +
    "stablecoins?|stak(?:e|ing)|supply|swaps?|tokens?|toml|trad(?:e|es|ing)|transactions?|transfers?|" +
    "trustlines?|tvl|tx|usd|usdt|validators?|volumes?|wallets?|xdr|yields?|btc|bitcoin|eth|ethereum"
)
export const isAboutMoney = (text: string): boolean => text.match(ofMoney) !== null

/** Words that do not make a topic by themselves. */
const topicless = whole(
  "i|me|my|a|an|the|any|some|all|of|for|to|in|on|at|by|is|are|do|does|can|it|and|or|with|that|which|what|" +
    "where|how|who|find|get|give|show|list|search|looking|look|need|want|use|using|buy|call|pay|best|good|" +
    "great|new|top|please|there|apis?|services?|tools?|endpoints?|servers?|resources?|providers?|sellers?|" +
    "listings?|paid|data|json|https?"
)
const hasTopic = (text: string): boolean => /\p{L}{2,}|[\p{Script=Han}]/u.test(text.replace(topicless, " "))

/** Removes punctuation and joints that a removed frame leaves at the ends. */
const tidied = (text: string): string =>
  text
    .replace(/\s+([,.;:?!])/g, "$1")
    .replace(/([,;:])(?:\s*[,;:])+/g, "$1")
    .replace(/\([\s,;]*\)?(?=\s*$)|\(\s*\)/g, " ")
    .replace(/\s+/g, " ")
    .replace(/^[\s,;:.&-]+|[\s,;:&-]+$/g, "")
    .replace(/(?:[\s,]+(?:and|or|with|that|which|via|using|for|by|in|on))+[\s,.?!]*$/i, "")
    .replace(/^(?:(?:and|or|with|via|for|that|to)\s+)+(?=\S)/i, "")

/** Removes the matches of a pattern. Leaves the query unchanged if that would remove its topic. */
const without = (query: string, pattern: RegExp): Pick<Framed, "query" | "words"> => {
  const words = (query.match(pattern) ?? []).map((word) => word.trim()).filter((word) => word !== "")
  const rest = words.length === 0 ? query : tidied(query.replace(pattern, " "))
  return words.length > 0 && hasTopic(rest) ? { query: rest, words } : { query, words: [] }
}

const topicWords = (text: string): number => (text.replace(topicless, " ").match(/\p{L}{2,}/gu) ?? []).length
const medium = whole("apis?|services?|tools?|endpoints?")

/**
 * Removes a single coin or network name. It belongs to the frame if the query has a topic of several words, a medium or
 * another frame. In a query with words of money it is the topic, unless it ends a query that has another frame.
 */
const withoutLone = (query: string, isFramed: boolean): Pick<Framed, "query" | "words"> => {
  const rest = query.replace(edges, " ")
  if (isAboutMoney(rest)) return isFramed ? without(query, trailing) : { query, words: [] }
  const isFrame = isFramed || topicWords(rest) > 1 || rest.match(medium) !== null
  return isFrame ? without(query, edges) : { query, words: [] }
}

export const readFrame = (query: string): Framed => {
  const framed = without(query, frame)
  const tooled = without(framed.query, tool)
  const bare = withoutLone(tooled.query, framed.words.length + tooled.words.length > 0)
  const words = [...framed.words, ...tooled.words, ...bare.words]
  const isDollar = words.some((word) => /\busdc?\b/i.test(word))
  return {
    query: bare.query,
    words,
    prefers: [...(tooled.words.length > 0 ? (["tool"] as const) : []), ...(isDollar ? (["dollar"] as const) : [])]
  }
}
