package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
)

// The other packages of this module ask more of images and sites than importers: see package inside.
func init() {
	hooks.Dwarfloc = &hooks.Functions[Image, Site, SiteList, Variable, Matcher]{
		Along:             (*Image).sitesAlong,
		CheckInstructions: (*Image).checkInstructions,
		CompilationDir:    (*Image).compilationDir,
		Controls:          (*Image).controls,
		Data:              (*Image).dataAt,
		EachWays:          (*Image).eachWithWays,
		File:              (*Image).elf,
		KeepDerived:       (*Image).keepDerived,
		Kept:              (*Image).keptCoverage,
		Keep:              (*Image).keepCoverage,
		Ready:             (*Image).ready,
		Memory:            (*Image).memoryAt,
		ImageType:         (*Image).typeNamed,
		AnsweredBy:        (*Image).answeredBy,
		Ways:              (*Image).waysOfSites,
		At:                (*Site).atOffset,
		Before:            (*Site).beforeWay,
		Body:              (*Site).bodyID,
		Enumerator:        (*Site).enumerator,
		Evidence:          (*Site).evidence,
		Frame:             (*Site).frameVariable,
		Jumps:             (*Site).jumpsAway,
		Named:             (*Site).namedBy,
		SiteType:          (*Site).namedType,
		Once:              (*Site).once,
		Pointee:           (*Site).pointee,
		Refused:           (*Site).refused,
		Result:            (*Site).result,
		ReturnAddress:     (*Site).returnAddress,
		Returns:           (*Site).returns,
		Unset:             (*Site).unset,
		WaysIn:            (*Site).waysIn,
		WaysOut:           (*Site).waysOut,
		EachOf:            (*SiteList).each,
		Clone:             (*Site).keptCopy,
		List:              (*Image).siteList,
		ListAt:            (*Image).listAt,
		OnlySymbols:       (*Image).onlySymbols,
		Held:              (*Image).held,
		StaticProbes:      (*Image).staticProbes,
		Argument:          (*Site).argument,
		NoNames:           (*Site).noNames,
	}
}
