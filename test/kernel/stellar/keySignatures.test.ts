// The signature value of a classic account's authorization: a list of signatures by keys, or another form.
import { expect, it } from "vitest"
import { keySignatures, signatureValue } from "../../../kernel/stellar/AuthEntry.ts"
import { bytesValue, vecOf, vecValue } from "../../../kernel/stellar/Value.ts"

const one = { key: new Uint8Array(32).fill(1), signature: new Uint8Array(64).fill(2) }
const other = { key: new Uint8Array(32).fill(3), signature: new Uint8Array(64).fill(4) }
const items = [one, other].flatMap((signature) => vecOf(signatureValue(signature)) ?? [])

it("reads every signature by a key", () => {
  expect(keySignatures(signatureValue(one))).toEqual([one])
  expect(keySignatures(vecValue(items))).toEqual([one, other])
  expect(keySignatures(vecValue([]))).toEqual([])
})

it("reads no signatures if one has another form", () => {
  expect(keySignatures(vecValue([...items, bytesValue(one.signature)]))).toBeUndefined()
  expect(keySignatures(bytesValue(one.signature))).toBeUndefined()
})
