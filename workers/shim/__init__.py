"""The parent of one shell, outliving its worker."""
