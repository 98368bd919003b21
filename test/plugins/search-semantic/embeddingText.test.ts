// The text that an embedding model reads of a listing.
import { expect, it } from "vitest"
import { embeddingText } from "../../../plugins/search-semantic/embeddingText.ts"
import { resourceDocument } from "../search-lexical/resourceDocument.ts"

it("the text of a listing is cut between characters", () => {
  const texts = ["", "x"].map((before) =>
    embeddingText(resourceDocument({ serviceName: "Faces", description: `${before}${"\u{1f600}".repeat(3_000)}` }))
  )
  expect(texts.map((text) => [text.length, text.isWellFormed()])).toEqual([
    [4_000, true],
    [4_000, true]
  ])
})
