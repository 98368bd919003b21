// Normalizes text pasted into the search box. Removes the marks that come with a copy, joins a hash or address that was
// broken over lines, and extracts it from a link of an explorer or of these pages. Pure.

const account = /^[GC][A-Z2-7]{55}$/i
const transaction = /^[0-9a-f]{64}$/i
const settlement = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const isAccount = (text: string): boolean => account.test(text)

/** A transaction's hash or a settlement's id. */
export const isTransaction = (text: string): boolean => transaction.test(text) || settlement.test(text)

/** A complete identifier in its stored form. Undefined for any other text. */
const whole = (text: string): string | undefined =>
  isAccount(text) ? text.toUpperCase() : isTransaction(text) ? text.toLowerCase() : undefined

/** A link of an explorer, or of one of these pages. */
const linked = /[/#?&](?:tx|transactions?|accounts?|contracts?|settlements?)[/=]([0-9a-z-]{36,64})(?![0-9a-z-])/i

/** Invisible marks, and quotes and brackets around the text. */
const marks = /[\u200b-\u200f\u2060\ufeff]/g
const around = /^["'`“‘<([{]+|["'`”’>)\]},.;]+$/g

export const searchedFor = (pasted: string): string => {
  const text = pasted.replace(marks, "").replace(/\s+/g, " ").trim().replace(around, "")
  const joined = text.replaceAll(" ", "").replace(/^0x(?=[0-9a-f]{64}$)/i, "")
  return whole(joined) ?? whole(linked.exec(text)?.[1] ?? "") ?? text
}
