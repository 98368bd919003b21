// The tree of the payment map against its definition: a set of leaves has one root, in any order and any pages, and the
// published checker accepts each leaf's path only for that leaf's value.
import { createHash } from "node:crypto"
import { expect, it } from "vitest"
import { checkMap } from "../../../examples/receipts/verify.mjs"
import {
  decodePage,
  encodePage,
  fold,
  foldProven,
  type MapLeaf,
  pageBits,
  provenIn,
  subtreeOf
} from "../../../plugins/receipts/log/mapTree.ts"

const sha256 = (bytes: Uint8Array): Uint8Array => new Uint8Array(createHash("sha256").update(bytes).digest())
const hashOf = (text: string) => sha256(Buffer.from(text))
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")
const leaves: ReadonlyArray<MapLeaf> = Array.from({ length: 500 }, (_, n) => ({
  key: hashOf(`key ${n}`),
  value: hashOf(`value ${n}`)
}))
const secret = hashOf("secret")
const treeOf = (root: Uint8Array) => ({ map: { root: hex(root), secretHash: hex(sha256(secret)) } })

it.each([1, 2, 3, 40, 500])("a map of %i proves each leaf, and no other value", async (size) => {
  const some = leaves.slice(0, size)
  const root = subtreeOf(sha256, some, 0)
  for (const { key, value } of some.slice(0, 40)) {
    const { path, subtree } = provenIn(sha256, some, key, 0)
    expect(subtree).toEqual(root)
    const proof = { secret: Buffer.from(secret).toString("base64url"), hashes: path.map(hex) }
    expect(JSON.stringify(proof).length).toBeLessThan(3_000)
    const place = { key: hex(key), value: hex(value) }
    await checkMap(treeOf(root.hash), proof, place)
    await expect(checkMap(treeOf(root.hash), proof, { ...place, value: hex(key) })).rejects.toThrow("another leaf")
    await expect(checkMap(treeOf(root.hash), proof, { ...place, key: hex(value) })).rejects.toThrow("another leaf")
  }
})

it("a map has one root, whether its subtrees are pages or not", () => {
  for (const size of [1, 2, 3, 40, 500]) {
    const some = leaves.slice(0, size)
    const subtrees = Array.from({ length: 16 }, (_, digit) =>
      subtreeOf(
        sha256,
        some.filter(({ key }) => key[0]! >> 4 === digit),
        pageBits
      )
    )
    const root = subtreeOf(sha256, some.toReversed(), 0)
    expect(fold(sha256, decodePage(encodePage(subtrees)))).toEqual(root)
    const { key } = some[0]!
    const below = provenIn(
      sha256,
      some.filter((leaf) => leaf.key[0]! >> 4 === key[0]! >> 4),
      key,
      pageBits
    )
    expect(foldProven(sha256, subtrees, below, key, 0)).toEqual(provenIn(sha256, some, key, 0))
  }
})
